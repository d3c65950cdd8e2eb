// What people compare to know that a key is the one they mean.

import { createHash } from 'node:crypto';
import { knownKeyBytes } from './key-text.ts';

const alphabet = 'abcdefghijklmnopqrstuvwxyz234567';

/** Base32 in lower case (RFC 4648, section 6). `bytes` of whole groups: five make eight letters. */
function base32(bytes: Uint8Array): string {
  const bits = Array.from(bytes, (byte) => byte.toString(2).padStart(8, '0')).join('');
  return (bits.match(/.{5}/g) ?? []).map((five) => alphabet[Number.parseInt(five, 2)]).join('');
}

const inFours = (text: string, between: string): string => (text.match(/.{4}/g) ?? []).join(between);

/** Of a key, 43 characters: 160 bits of a hash, eight groups of four letters and digits. */
export function fingerprint(key: string): string {
  const digest = createHash('sha256').update('postbell-1 fingerprint\0').update(knownKeyBytes(key)).digest();
  return inFours(base32(digest.subarray(0, 20)), '-');
}

/** Of two keys, the same in either order: 12 digits in three groups, for reading aloud. */
export function pairCode(a: string, b: string): string {
  const [lower, higher] = [knownKeyBytes(a), knownKeyBytes(b)].sort(Buffer.compare) as [
    Uint8Array,
    Uint8Array,
  ];
  const digest = createHash('sha256').update('postbell-1 pair code\0').update(lower).update(higher).digest();
  return inFours(String(digest.readBigUInt64BE(0) % 10n ** 12n).padStart(12, '0'), ' ');
}
