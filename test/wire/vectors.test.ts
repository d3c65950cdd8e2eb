// Every vector, by the product and by a second implementation: identities, records P1 to P5, the sealed item P6, the published ones
// of HPKE.

import { createHash } from 'node:crypto';
import { ed25519, x25519 } from '@noble/curves/ed25519.js';
import { describe, expect, it } from 'vitest';
import { signerOf } from '../../src/crypto/ed25519.ts';
import { exchangePublicOf, exchangeSecretBytes, ownKeysOf } from '../../src/crypto/exchange-key.ts';
import { fingerprint, pairCode } from '../../src/crypto/fingerprint.ts';
import {
  aeadOpen,
  aeadSeal,
  decapsulate,
  deriveKeyPair,
  encapsulate,
  hpkeOpen,
  hpkeSeal,
  hpkeSuite,
  keySchedule,
  labeledExpand,
} from '../../src/crypto/hpke.ts';
import { keyBytes, keyText, signatureText } from '../../src/crypto/key-text.ts';
import { publicBytesOf, publicKeyOf } from '../../src/crypto/platform-key.ts';
import { signRecord, verifyRecord } from '../../src/crypto/record.ts';
import { openItem, sealItem } from '../../src/crypto/sealed-item.ts';
import { readFields } from '../../src/protocol/wire/decode.ts';
import { encodeBody } from '../../src/protocol/wire/encode.ts';
import { readHeader } from '../../src/protocol/wire/header.ts';
import {
  bodyOfP1,
  deviceB,
  exchangeA,
  exchangeB,
  fingerprints,
  keyA,
  keyB,
  p6,
  pairCodeOfAAndB,
  seedA,
  seedB,
  type Vector,
  vectors,
} from '../vectors/postbell-1.ts';
import { rfc9180 } from '../vectors/published.ts';
import { fromHex, plainBody, plainOpen, plainPadded, plainSeal, plainSigned, toHex } from './independent.ts';

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
const seedOf = ({ record }: Vector): Uint8Array => (record.from === keyA ? seedA : seedB);
const bytesOf = (text: string): Uint8Array => keyBytes(text) as Uint8Array;
const typeNumbers = { message: 1, receipt: 2, pair_request: 3, pair_accept: 4, route: 5, query: 6, card: 7 };

/** The record by the second implementation. */
function second({ record, fields }: Vector): Uint8Array {
  const { type, from, to, time_ms, id } = record;
  return plainBody({ type: typeNumbers[type], from, to, time: time_ms, id, fields });
}

function vector(id: string): Vector {
  return vectors.find((one) => one.id === id) as Vector;
}

function holds(one: Vector): void {
  const body = encodeBody(one.record);
  expect(body.length).toBe(one.bodyBytes);
  expect(sha256(body)).toBe(one.bodySha256);
  expect(toHex(second(one))).toBe(toHex(body));
  const signed = signRecord(one.record, signerOf(seedOf(one)));
  expect(signatureText(signed.subarray(-64))).toBe(one.signature);
  expect(toHex(plainSigned(body, seedOf(one)))).toBe(toHex(signed));
  expect(ed25519.verify(signed.subarray(-64), body, bytesOf(one.record.from), { zip215: false })).toBe(true);
  expect(verifyRecord(signed)).toBe(true);
  const { fields: _, ...header } = one.record;
  expect(readHeader(signed)).toMatchObject({ header, flags: 0 });
  expect(readFields(signed)).toEqual(one.record);
}

describe('identities', () => {
  it('have the keys of their seeds', () => {
    expect([signerOf(seedA).key, signerOf(seedB).key]).toEqual([keyA, keyB]);
    expect(keyText(ed25519.getPublicKey(seedA))).toBe(keyA);
    expect(keyText(ed25519.getPublicKey(seedB))).toBe(keyB);
  });

  it('[PEER-008] have a fingerprint of eight groups', () => {
    expect(fingerprint(keyA)).toBe(fingerprints.a);
    expect(fingerprint(keyB)).toBe(fingerprints.b);
    const digest = createHash('sha256').update('postbell-1 fingerprint\0').update(bytesOf(keyA)).digest();
    const letters = fingerprints.a.replaceAll('-', '');
    const bits = Array.from(letters, (letter) =>
      'abcdefghijklmnopqrstuvwxyz234567'.indexOf(letter).toString(2).padStart(5, '0'),
    ).join('');
    expect(BigInt(`0b${bits}`)).toBe(BigInt(`0x${digest.toString('hex', 0, 20)}`));
  });

  it('[PEER-009] have a code for each pair, the same on both sides', () => {
    expect(pairCode(keyA, keyB)).toBe(pairCodeOfAAndB);
    expect(pairCode(keyB, keyA)).toBe(pairCodeOfAAndB);
    // Ordered as bytes: as text, `-` and `_` would stand elsewhere.
    const keys = Array.from({ length: 200 }, (_, at) => signerOf(new Uint8Array(32).fill(at)).key);
    const [first, second] = keys
      .flatMap((a) => keys.map((b) => [a, b] as const))
      .find(([a, b]) => a < b && Buffer.compare(bytesOf(a), bytesOf(b)) > 0) as readonly [string, string];
    const digest = createHash('sha256').update('postbell-1 pair code\0').update(bytesOf(second));
    const number = digest.update(bytesOf(first)).digest().readBigUInt64BE(0) % 10n ** 12n;
    for (const code of [pairCode(first, second), pairCode(second, first)])
      expect(code.replaceAll(' ', '')).toBe(String(number).padStart(12, '0'));
  });

  it('keep the zeros with which a code begins', () => {
    const keys = Array.from({ length: 64 }, (_, at) => signerOf(new Uint8Array(32).fill(at)).key);
    const codes = keys.map((key) => pairCode(key, keyA));
    for (const code of codes) expect(code).toMatch(/^\d{4} \d{4} \d{4}$/);
    expect(codes.some((code) => code.startsWith('0'))).toBe(true);
  });

  it('[PEER-095] have an X25519 key that is their Ed25519 key mapped', () => {
    expect(toHex(exchangePublicOf(bytesOf(keyA))?.bytes as Uint8Array)).toBe(exchangeA);
    expect(toHex(exchangePublicOf(bytesOf(keyB))?.bytes as Uint8Array)).toBe(exchangeB);
    for (const [seed, key] of [
      [seedA, keyA],
      [seedB, keyB],
    ] as const) {
      const mapped = exchangePublicOf(bytesOf(key))?.bytes;
      expect(mapped).toEqual(ed25519.utils.toMontgomery(bytesOf(key)));
      expect(exchangeSecretBytes(seed)).toEqual(ed25519.utils.toMontgomerySecret(seed));
      // The secret half belongs to the public half.
      expect(x25519.getPublicKey(exchangeSecretBytes(seed))).toEqual(mapped);
      expect(ownKeysOf(seed).exchange.bytes).toEqual(mapped);
      expect(keyText(ownKeysOf(seed).identity)).toBe(key);
    }
    const small = new Uint8Array(32);
    expect(exchangePublicOf(small)).toBeUndefined();
    small[0] = 1;
    expect(exchangePublicOf(small)).toBeUndefined();
  });
});

const shows: Readonly<Record<string, string>> = {
  P4: '[PEER-103] a pair_request: ',
  P5: '[PEER-104] a pair_accept: ',
};

describe('records', () => {
  it.each(vectors.map((one) => [`${shows[one.id] ?? ''}${one.id}`, one] as const))(
    '%s has these bytes, by two implementations',
    (_, one) => {
      holds(one);
    },
  );

  it('P1 is written as printed', () => {
    expect(toHex(encodeBody(vector('P1').record))).toBe(bodyOfP1);
  });
});

const infoOfItems = Buffer.concat([Buffer.from('postbell-1 seal\0'), bytesOf(keyB)]);
const aadOfItems = Buffer.concat([Buffer.from('pbs1'), Buffer.from([1]), bytesOf(keyB), fromHex(deviceB)]);

async function holdsP6(): Promise<void> {
  const record = signRecord(vector('P1').record, signerOf(seedA));
  const item = sealItem({ record, to: keyB, queueId: deviceB, ephemeral: p6.ephemeral });
  expect(item.length).toBe(p6.itemBytes);
  expect(sha256(item)).toBe(p6.itemSha256);
  expect(openItem({ item, seed: seedB, queueId: deviceB })).toEqual(record);

  const recipient = exchangePublicOf(bytesOf(keyB));
  const pair = deriveKeyPair(p6.ephemeral);
  expect(toHex(pair.bytes)).toBe(p6.enc);
  const shared = encapsulate(recipient as NonNullable<typeof recipient>, pair) as Uint8Array;
  expect(toHex(shared)).toBe(p6.sharedSecret);
  const schedule = keySchedule(shared, infoOfItems);
  expect(toHex(schedule.key)).toBe(p6.key);
  expect(toHex(schedule.baseNonce)).toBe(p6.baseNonce);

  const padded = plainPadded(record);
  expect(padded.length).toBe(p6.plaintextBytes);
  const { enc, ciphertext } = await plainSeal({
    recipient: fromHex(exchangeB),
    info: infoOfItems,
    aad: aadOfItems,
    plaintext: padded,
    ikm: p6.ephemeral,
  });
  expect(toHex(Buffer.concat([Buffer.from('pbs1'), Buffer.from([1]), enc, ciphertext]))).toBe(toHex(item));
  const opened = await plainOpen(exchangeSecretBytes(seedB), {
    enc: item.subarray(5, 37),
    info: infoOfItems,
    aad: aadOfItems,
    ciphertext: item.subarray(37),
  });
  expect(toHex(opened)).toBe(toHex(padded));
}

function holdsRfc9180(): void {
  const v = rfc9180;
  const ephemeral = deriveKeyPair(fromHex(v.ikmE));
  const recipient = deriveKeyPair(fromHex(v.ikmR));
  const told = { bytes: recipient.bytes, key: publicKeyOf('X25519', recipient.bytes) };
  const secretOf = (pair: typeof ephemeral) =>
    Buffer.from(pair.secret.export({ format: 'jwk' }).d as string, 'base64url').toString('hex');
  expect([secretOf(ephemeral), secretOf(recipient)]).toEqual([v.skEm, v.skRm]);
  expect([toHex(ephemeral.bytes), toHex(recipient.bytes)]).toEqual([v.pkEm, v.pkRm]);
  expect(toHex(publicBytesOf(told.key))).toBe(v.pkRm);
  const shared = encapsulate(told, ephemeral) as Uint8Array;
  expect(toHex(shared)).toBe(v.sharedSecret);
  expect(decapsulate(ephemeral.bytes, recipient)).toEqual(shared);
  const schedule = keySchedule(shared, fromHex(v.info));
  expect(toHex(schedule.context)).toBe(v.keyScheduleContext);
  expect(toHex(schedule.secret)).toBe(v.secret);
  expect(toHex(schedule.key)).toBe(v.key);
  expect(toHex(schedule.baseNonce)).toBe(v.baseNonce);
  expect(toHex(labeledExpand(hpkeSuite, schedule.secret, 'exp', schedule.context, 32))).toBe(
    v.exporterSecret,
  );
  for (const { aad, nonce, ciphertext } of v.encryptions) {
    const text = { key: schedule.key, nonce: fromHex(nonce), aad: fromHex(aad) };
    expect(toHex(aeadSeal(text, fromHex(v.plaintext)))).toBe(ciphertext);
    expect(toHex(aeadOpen(text, fromHex(ciphertext)) as Uint8Array)).toBe(v.plaintext);
  }
  const [first] = v.encryptions;
  const bound = { info: fromHex(v.info), aad: fromHex(first?.aad as string) };
  const sealed = hpkeSeal(told, fromHex(v.ikmE), bound, fromHex(v.plaintext));
  expect(toHex(sealed?.enc as Uint8Array)).toBe(v.pkEm);
  expect(toHex(sealed?.ciphertext as Uint8Array)).toBe(first?.ciphertext);
  const opened = hpkeOpen(recipient, fromHex(v.pkEm), bound, sealed?.ciphertext as Uint8Array);
  expect(toHex(opened as Uint8Array)).toBe(v.plaintext);
}

describe('sealing', () => {
  it('[PEER-100] passes RFC 9180 A.2.1, every value of it, and P6 by two implementations', async () => {
    holdsRfc9180();
    await holdsP6();
  });
});
