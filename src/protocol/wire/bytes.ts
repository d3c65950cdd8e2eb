// Numbers, ids and texts as the bytes of a record. All integers are big-endian.

import { hex } from '../id.ts';

export function concat(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

export const viewOf = (bytes: Uint8Array): DataView =>
  new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

export function uintBytes(value: number, length: 1 | 2 | 4 | 8): Uint8Array {
  const bytes = new Uint8Array(length);
  const view = viewOf(bytes);
  if (length === 8) view.setBigUint64(0, BigInt(value));
  else
    for (let at = length - 1, rest = value; at >= 0; at -= 1, rest = Math.floor(rest / 256))
      bytes[at] = rest % 256;
  return bytes;
}

export function uintAt(bytes: Uint8Array, at: number, length: 2 | 4): number {
  return length === 2 ? viewOf(bytes).getUint16(at) : viewOf(bytes).getUint32(at);
}

/** The number at `at`; undefined from 2^53 on, where doubles no longer count exactly. */
export function uint64At(bytes: Uint8Array, at: number): number | undefined {
  const value = viewOf(bytes).getBigUint64(at);
  return value < 2n ** 53n ? Number(value) : undefined;
}

/** Undefined unless it is lower-case hex of exactly `length` bytes. */
export function bytesOfHex(text: string, length: number): Uint8Array | undefined {
  if (text.length !== 2 * length || !/^[0-9a-f]*$/.test(text)) return undefined;
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length; at += 1) bytes[at] = digit(text, 2 * at) * 16 + digit(text, 2 * at + 1);
  return bytes;
}

/** Of a text that is hex: 0 to 9 are 48 to 57, a to f are 97 to 102. */
function digit(text: string, at: number): number {
  const code = text.charCodeAt(at);
  return code < 58 ? code - 48 : code - 87;
}

/** @param bytes 16, any: no version or variant is read into them */
export function uuidText(bytes: Uint8Array): string {
  return hex(bytes).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

const uuidForm = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Undefined unless it is in lower case and laid out as a UUID. */
export function bytesOfUuid(text: string): Uint8Array | undefined {
  return uuidForm.test(text) ? bytesOfHex(text.replaceAll('-', ''), 16) : undefined;
}

const encoder = new TextEncoder();
/** A byte order mark is a character like another: dropping it would make one value of two texts. */
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** @param text well-formed */
export const utf8 = (text: string): Uint8Array => encoder.encode(text);

/** Undefined for bytes that are no UTF-8. */
export function textOfUtf8(bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes);
  } catch {
    return undefined;
  }
}
