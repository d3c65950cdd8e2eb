// Ed25519 (RFC 8032, pure), strict. The platform does the arithmetic; what it lets pass is refused before it is asked: keys and R of
// small order, encodings that are not the canonical one. It verifies in the cofactorless form: OpenSSL computes [S]B - [h]A,
// encodes the point and compares the bytes with R.

import { type KeyObject, sign as platformSign, verify as platformVerify } from 'node:crypto';
import { assert } from '../protocol/assert.ts';
import { isOnCurve } from './curve-point.ts';
import { keyText } from './key-text.ts';
import { privateKeyOf, publicBytesOf, publicKeyOf } from './platform-key.ts';
import { keysRemembered, remembered } from './remembered.ts';

/** What the relay port calls a signer. */
export interface Signer {
  /** 43 characters, base64url. */
  readonly key: string;
  /** @returns 64 bytes */
  sign(bytes: Uint8Array): Uint8Array;
}

/** @param seed 32 bytes, the private key of RFC 8032 */
export function signerOf(seed: Uint8Array): Signer {
  assert(seed.length === 32, 'a seed has 32 bytes');
  const secret = privateKeyOf('Ed25519', seed);
  return {
    key: keyText(publicBytesOf(secret)),
    sign: (bytes) => new Uint8Array(platformSign(null, bytes, secret)),
  };
}

/**
 * The y of the points whose order divides 8, with the sign bit clear: 0 (order 4), 1 (1), p-1 (2), two of order 8, and p and p+1,
 * which are 0 and 1 again.
 */
const smallOrder = new Set([
  '0000000000000000000000000000000000000000000000000000000000000000',
  '0100000000000000000000000000000000000000000000000000000000000000',
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
]);

const fieldPrime = 2n ** 255n - 19n;
const groupOrder = 2n ** 252n + 27742317777372353535851937790883648493n;

/** 32 bytes, little-endian, as they are in memory: no number is made of them. */
function isBelow(bytes: Uint8Array, bound: Uint8Array, topMask: number): boolean {
  for (let at = 31; at >= 0; at -= 1) {
    const byte = (bytes[at] as number) & (at === 31 ? topMask : 0xff);
    const other = bound[at] as number;
    if (byte !== other) return byte < other;
  }
  return false;
}

function littleEndian(value: bigint): Uint8Array {
  return Uint8Array.from({ length: 32 }, (_, at) => Number((value >> BigInt(8 * at)) & 255n));
}

const fieldPrimeBytes = littleEndian(fieldPrime);
const groupOrderBytes = littleEndian(groupOrder);

/** Canonical in y and not of small order. With small orders out, no point has x = 0, so that either sign bit is one point's. */
function isSoundEncoding(point: Uint8Array): boolean {
  if (!isBelow(point, fieldPrimeBytes, 0x7f)) return false;
  const plain = Buffer.from(point);
  plain[31] = (plain[31] as number) & 0x7f;
  return !smallOrder.has(plain.toString('hex'));
}

/** The key as the platform takes it; undefined for one that may not be used. Finding out takes about 200 microseconds. */
const usableKey = remembered<KeyObject | undefined>(keysRemembered, (key) =>
  isSoundEncoding(key) && isOnCurve(key) ? publicKeyOf('Ed25519', key) : undefined,
);

/** Whether it is the canonical encoding of a point on the curve whose order is not small. */
export function isUsableKey(key: Uint8Array): boolean {
  return key.length === 32 && usableKey(key) !== undefined;
}

/** Whether `signature` is the key's over exactly these bytes. False for a key, an R or an S that is not sound; it never throws. */
export function verify(key: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  if (key.length !== 32 || signature.length !== 64) return false;
  if (!isBelow(signature.subarray(32), groupOrderBytes, 0xff)) return false;
  if (!isSoundEncoding(signature.subarray(0, 32))) return false;
  const known = usableKey(key);
  return known !== undefined && platformVerify(null, message, known, signature);
}
