// Keys and signatures: which texts are one, which keys may be used, which signatures hold. Where the platform says yes and the
// specification no, both are shown.

import { createHash, verify as platformVerify } from 'node:crypto';
import { ed25519 } from '@noble/curves/ed25519.js';
import { describe, expect, it } from 'vitest';
import { isUsableKey, signerOf, verify } from '../../src/crypto/ed25519.ts';
import { exchangePublicOf } from '../../src/crypto/exchange-key.ts';
import { fingerprint } from '../../src/crypto/fingerprint.ts';
import { keyBytes, keyText, signatureBytes, signatureText } from '../../src/crypto/key-text.ts';
import { publicKeyOf } from '../../src/crypto/platform-key.ts';
import { signRecord, verifyRecord } from '../../src/crypto/record.ts';
import { remembered } from '../../src/crypto/remembered.ts';
import type { WireRecord } from '../../src/protocol/wire/record.ts';
import { refusedKeys, smallOrderPoints } from '../vectors/keys.ts';
import { keyA, keyB, seedA, seedB, vectors } from '../vectors/postbell-1.ts';
import { fromHex, toHex } from './independent.ts';

const bytesOf = (text: string): Uint8Array => keyBytes(text) as Uint8Array;
const message = new TextEncoder().encode('a message');
const { Point } = ed25519;
const order = Point.Fn.ORDER;

function littleEndian(value: bigint): Uint8Array {
  return fromHex(value.toString(16).padStart(64, '0')).reverse();
}

const joined = (...parts: Uint8Array[]): Uint8Array => new Uint8Array(Buffer.concat(parts));

const platform = (key: Uint8Array, said: Uint8Array, signature: Uint8Array): boolean =>
  platformVerify(null, said, publicKeyOf('Ed25519', key), signature);

/** h of RFC 8032, 5.1.7: SHA-512 of R, key and message, little-endian, modulo the order. */
function challenge(r: Uint8Array, key: Uint8Array, said: Uint8Array): bigint {
  const digest = createHash('sha512').update(r).update(key).update(said).digest();
  return BigInt(`0x${digest.reverse().toString('hex')}`) % order;
}

describe('identities', () => {
  it('[PEER-001] are keys: one name, two keys, two identities', () => {
    const named = (key: string): WireRecord => ({ ...(vectors[3]?.record as WireRecord), from: key });
    const [a, b] = [signerOf(seedA), signerOf(seedB)];
    const [one, two] = [signRecord(named(keyA), a), signRecord(named(keyB), b)];
    expect([verifyRecord(one), verifyRecord(two)]).toEqual([true, true]);
    // The same record but for the key: neither signature is the other's.
    expect(verify(bytesOf(keyB), one.subarray(0, -64), one.subarray(-64))).toBe(false);
    expect(verifyRecord(joined(two.subarray(0, -64), one.subarray(-64)))).toBe(false);
    expect(fingerprint(keyA)).not.toBe(fingerprint(keyB));
  });

  it('[PEER-002] are written in one way', () => {
    const signature = signatureText(signerOf(seedA).sign(message));
    expect([keyA.length, signature.length]).toEqual([43, 86]);
    expect(keyText(bytesOf(keyA))).toBe(keyA);
    expect(signatureText(signatureBytes(signature) as Uint8Array)).toBe(signature);
    const lastLetters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
    for (const [text, read, rest] of [
      [keyA, keyBytes, 4],
      [signature, signatureBytes, 16],
    ] as const) {
      const body = text.slice(0, -1);
      for (const wrong of [
        `${text}=`,
        `${text}==`,
        `${body}+`,
        `${body}/`,
        `${text.slice(0, -5)}+${text.slice(-4)}`,
        `${text.slice(0, -5)}/${text.slice(-4)}`,
        ` ${text}`,
        `${text} `,
        `${text}\n`,
        ` ${text.slice(1)}`,
        `${body} `,
        `${body}=`,
        `${body}\u00e9`,
        body,
        `${text}A`,
        '',
        text.slice(0, 40),
      ])
        expect([wrong, read(wrong)]).toEqual([wrong, undefined]);
      // Of the last letter's bits only the first belong to the value: every 4th, or 16th, letter has zeros behind them.
      const taken = Array.from(lastLetters).filter((letter) => read(body + letter) !== undefined);
      expect(taken).toEqual(Array.from(lastLetters).filter((_, at) => at % rest === 0));
    }
  });
});

describe('keys', () => {
  it('[PEER-004] are canonical points of the curve and not of small order', () => {
    for (const { name, key } of refusedKeys) expect([name, isUsableKey(fromHex(key))]).toEqual([name, false]);
    for (const key of smallOrderPoints) expect([key, isUsableKey(fromHex(key))]).toEqual([key, false]);
    for (let byte = 0; byte < 32; byte += 1)
      expect(isUsableKey(bytesOf(signerOf(new Uint8Array(32).fill(byte)).key))).toBe(true);
    for (const length of [0, 31, 33]) expect(isUsableKey(new Uint8Array(length).fill(9))).toBe(false);
    // Where the libraries agree that it is a point: the same answer, for points that nobody chose.
    let usable = 0;
    for (let at = 0; at < 200; at += 1) {
      const key = createHash('sha256').update(String(at)).digest();
      const isPoint = (): boolean => {
        try {
          return !Point.fromBytes(key).isSmallOrder();
        } catch {
          return false;
        }
      };
      usable += Number(isPoint());
      expect([at, isUsableKey(key)]).toEqual([at, isPoint()]);
    }
    expect(usable).toBeGreaterThan(50);
    expect(usable).toBeLessThan(150);
    expect(exchangePublicOf(fromHex(refusedKeys[7]?.key as string))).toBeUndefined();
  });

  it('[PEER-005, PEER-006] of small order are refused in all 14 encodings, and as R', () => {
    expect(new Set(smallOrderPoints).size).toBe(14);
    const seed = seedA;
    const { scalar } = ed25519.utils.getExtendedPublicKey(seed);
    const key = bytesOf(keyA);
    for (const point of smallOrderPoints) {
      const small = fromHex(point);
      expect([point, isUsableKey(small)]).toEqual([point, false]);
      // As the key: S = 0, R = key, and any R with its own S.
      expect(verify(small, message, joined(small, new Uint8Array(32)))).toBe(false);
      expect(verify(small, message, joined(Point.BASE.toBytes(), littleEndian(1n)))).toBe(false);
      // As R: S = h a, which holds where R is the neutral point, and up to the cofactor for the others.
      const s = (challenge(small, key, message) * scalar) % order;
      expect([point, verify(key, message, joined(small, littleEndian(s)))]).toEqual([point, false]);
    }
    // That R is what the refusal is for: the platform takes the neutral one.
    const neutral = fromHex(smallOrderPoints[2] as string);
    const s = (challenge(neutral, key, message) * scalar) % order;
    expect(platform(key, message, joined(neutral, littleEndian(s)))).toBe(true);
  });

  it('that are worked out once are forgotten in the order of their last use', () => {
    const made: number[] = [];
    const twice = remembered(2, (key) => made.push(key[0] as number));
    for (const byte of [1, 2, 1, 3, 1, 2, 3]) twice(Uint8Array.of(byte));
    expect(made).toEqual([1, 2, 3, 2, 3]);
  });
});

describe('signatures', () => {
  it('hold both ways between this product and another library', () => {
    for (let byte = 0; byte < 16; byte += 1) {
      const seed = new Uint8Array(32).fill(byte);
      const said = new Uint8Array(byte * 7).fill(byte);
      const key = ed25519.getPublicKey(seed);
      const ours = signerOf(seed).sign(said);
      expect(toHex(ours)).toBe(toHex(ed25519.sign(said, seed)));
      expect(ed25519.verify(ours, said, key, { zip215: false })).toBe(true);
      expect(verify(key, said, ours)).toBe(true);
      expect(verify(key, joined(said, Uint8Array.of(0)), ours)).toBe(false);
    }
  });

  it('[PEER-005] are strict where the platform is not', () => {
    // A key of small order, R equal to it, S = 0: for the platform it signed everything.
    const weak = bytesOf(`AQ${'A'.repeat(41)}`);
    const forged = joined(weak, new Uint8Array(32));
    for (const said of ['', 'yes', 'no']) {
      const bytes = new TextEncoder().encode(said);
      expect(platform(weak, bytes, forged)).toBe(true);
      expect(verify(weak, bytes, forged)).toBe(false);
    }

    // S and S plus the order say the same; only the smaller is a signature.
    const key = bytesOf(keyA);
    const good = signerOf(seedA).sign(message);
    const r = good.subarray(0, 32);
    const s = BigInt(`0x${toHex(new Uint8Array(good.subarray(32)).reverse())}`);
    expect(verify(key, message, joined(r, littleEndian(s)))).toBe(true);
    for (const more of [order, 2n * order, 8n * order])
      expect(verify(key, message, joined(r, littleEndian(s + more)))).toBe(false);
    for (const edge of [order, order + 1n, 2n ** 256n - 1n])
      expect(verify(key, message, joined(r, littleEndian(edge)))).toBe(false);

    // R whose y is not below p, as bytes that a reader could take for y - p.
    for (const { key: point } of refusedKeys)
      expect(verify(key, message, joined(fromHex(point), good.subarray(32)))).toBe(false);

    for (const length of [0, 63, 65]) expect(verify(key, message, new Uint8Array(length))).toBe(false);
    expect(verify(key.subarray(1), message, good)).toBe(false);
  });

  it('[PEER-005] are verified without the cofactor', () => {
    // A key with a part of order 8: [8] of both sides agree for each signature, the sides themselves for one in eight.
    const scalar = 12_345n;
    const torsion = Point.fromHex('26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05');
    const key = Point.BASE.multiply(scalar).add(torsion).toBytes();
    expect(isUsableKey(key)).toBe(true);
    let held = 0;
    for (let at = 1n; at <= 64n; at += 1n) {
      const r = Point.BASE.multiply(at).toBytes();
      const h = challenge(r, key, message);
      const signature = joined(r, littleEndian((at + h * scalar) % order));
      expect(ed25519.verify(signature, message, key, { zip215: true })).toBe(true);
      const holds = h % 8n === 0n;
      expect([at, verify(key, message, signature), platform(key, message, signature)]).toEqual([
        at,
        holds,
        holds,
      ]);
      held += Number(holds);
    }
    expect(held).toBeGreaterThan(0);
    expect(held).toBeLessThan(32);
  });
});
