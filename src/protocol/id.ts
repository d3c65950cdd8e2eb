// Ids made by Postbell: a kind, an underscore and a ULID in lower case (github.com/ulid/spec): 48 bits of
// milliseconds, then 80 random bits, so that rows made together lie together in an index and nobody can guess one.

const alphabet = '0123456789abcdefghjkmnpqrstvwxyz';

export type IdKind = 'msg' | 'dlv' | 'evt' | 'rcp' | 'con' | 'att' | 'acc' | 'run' | 'fdl';

/** @param random 10 random bytes */
export function makeId(kind: IdKind, nowMs: number, random: Uint8Array): string {
  let bits = BigInt(nowMs);
  for (const byte of random.subarray(0, 10)) bits = (bits << 8n) | BigInt(byte);
  let text = '';
  for (let shift = 125n; shift >= 0n; shift -= 5n) text += alphabet[Number((bits >> shift) & 31n)];
  return `${kind}_${text}`;
}

/** Lower-case hex. */
export function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
