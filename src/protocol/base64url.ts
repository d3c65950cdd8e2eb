// Base64 with the URL and file name safe alphabet, without padding (RFC 4648, section 5). One value has one text: what another
// encoder could have written otherwise is not read.

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
const valueByLetter = new Map(Array.from(alphabet, (letter, value) => [letter, value]));

export function base64url(bytes: Uint8Array): string {
  let text = '';
  let held = 0;
  let bits = 0;
  for (const byte of bytes) {
    held = ((held << 8) | byte) & 0xffff;
    bits += 8;
    for (; bits >= 6; bits -= 6) text += alphabet[(held >> (bits - 6)) & 63];
  }
  return bits === 0 ? text : text + alphabet[(held << (6 - bits)) & 63];
}

/** Undefined where the text is not what `base64url` writes: another letter, a blank, padding, trailing bits that are not zero. */
export function bytesOfBase64url(text: string): Uint8Array | undefined {
  const bytes = new Uint8Array(Math.floor((text.length * 6) / 8));
  let held = 0;
  let bits = 0;
  let at = 0;
  for (const letter of text) {
    const value = valueByLetter.get(letter);
    if (value === undefined) return undefined;
    held = ((held << 6) | value) & 0xffff;
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes[at] = (held >> bits) & 255;
    at += 1;
  }
  // Six bits left are a letter that begins a byte and does not end it.
  const rest = held & ((1 << bits) - 1);
  return bits < 6 && rest === 0 ? bytes : undefined;
}

/** Bytes of an identity's public key, as of a seed; as text 43 characters. */
export const keyBytesLength = 32;

/** Whether it is the text of 32 bytes. Whether those are a key that may be used is asked of the cryptography. */
export function isKeyText(text: string): boolean {
  return text.length === 43 && bytesOfBase64url(text) !== undefined;
}
