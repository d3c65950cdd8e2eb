// Keys and signatures as text: base64url without padding, 43 and 86 characters, one text a value.

import { assert } from '../protocol/assert.ts';
import { base64url, bytesOfBase64url, keyBytesLength } from '../protocol/base64url.ts';

const signatureBytesLength = 64;

/** The 32 bytes of a public key or a seed; undefined for any other text than `keyText` writes. */
export function keyBytes(text: string): Uint8Array | undefined {
  return exactly(text, 43);
}

/** @param bytes 32 of them */
export function keyText(bytes: Uint8Array): string {
  assert(bytes.length === keyBytesLength, 'a key has 32 bytes');
  return base64url(bytes);
}

/** The 64 bytes of a signature; undefined for any other text than `signatureText` writes. */
export function signatureBytes(text: string): Uint8Array | undefined {
  return exactly(text, 86);
}

/** @param bytes 64 of them */
export function signatureText(bytes: Uint8Array): string {
  assert(bytes.length === signatureBytesLength, 'a signature has 64 bytes');
  return base64url(bytes);
}

/** For texts that were checked where they came in: keys of stored peers, of read records. */
export function knownKeyBytes(text: string): Uint8Array {
  const bytes = keyBytes(text);
  assert(bytes !== undefined, 'a key is 43 characters of base64url');
  return bytes;
}

/** The length first: nobody's long text is read to its end. */
function exactly(text: string, characters: number): Uint8Array | undefined {
  return text.length === characters ? bytesOfBase64url(text) : undefined;
}
