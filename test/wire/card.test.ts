// Sealed cards: one text for several readers, and for nobody else. Suites: what is known, and what is picked.

import { createCipheriv } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { signerOf } from '../../src/crypto/ed25519.ts';
import { exchangePublicOf, exchangeSecretBytes, ownKeysOf } from '../../src/crypto/exchange-key.ts';
import { keyBytes } from '../../src/crypto/key-text.ts';
import { signRecord, verifyRecord } from '../../src/crypto/record.ts';
import { pickSuite, suiteOf, suitesKnown } from '../../src/crypto/seal-suites.ts';
import { openCard, sealCard } from '../../src/crypto/sealed-card.ts';
import { openItem, sealItem } from '../../src/crypto/sealed-item.ts';
import { readFields } from '../../src/protocol/wire/decode.ts';
import type { WireRecord } from '../../src/protocol/wire/record.ts';
import { deviceA, deviceB, keyA, keyB, seedA, seedB, T, vectors } from '../vectors/postbell-1.ts';
import { fromHex, plainOpen, plainPadded, plainSeal, toHex } from './independent.ts';

const session = {
  session_id: 's-1',
  principal: 'reviewer',
  project: 'demo',
  host_kind: 'claude',
  directory: 'demo',
  git: 'main',
  work_summary: 'reviews',
  bell: 'listener',
  generation: 3,
};
const card: WireRecord = {
  type: 'card',
  from: keyA,
  to: undefined,
  time_ms: T,
  id: '40414243-4445-4647-4849-4a4b4c4d4e4f',
  fields: { sessions: [session] },
};
const record = signRecord(card, signerOf(seedA));
const owner = { owner: keyA, deviceId: deviceA };
const seedOf = (n: number): Uint8Array => new Uint8Array(32).fill(n);
const keyOf = (n: number): string => signerOf(seedOf(n)).key;

/** Other bytes at each call, the same in each run. */
function counted(start = 0): (count: number) => Uint8Array {
  let calls = start;
  return (count) => {
    calls += 1;
    return new Uint8Array(count).map((_, at) => (calls * 31 + at * 7 + (calls >> 8)) & 255);
  };
}

const sealed = (recipients: readonly string[], random = counted()): Uint8Array => {
  const made = sealCard({ ...owner, record, recipients, random });
  if (typeof made === 'string') throw new Error(made);
  return made;
};

describe('a sealed card', () => {
  it('is read by each recipient and by nobody else', () => {
    const made = sealed([keyB, keyOf(1), keyOf(2)]);
    expect(made.length).toBe(7 + 3 * 80 + 512 + 16);
    for (const seed of [seedB, seedOf(1), seedOf(2)]) {
      const opened = openCard({ ...owner, card: made, seed }) as Uint8Array;
      expect(opened).toEqual(record);
      expect(verifyRecord(opened)).toBe(true);
      expect(readFields(opened)).toEqual(card);
    }
    for (const seed of [seedA, seedOf(3)])
      expect(openCard({ ...owner, card: made, seed })).toBe('unopenable');
    expect(openCard({ owner: keyB, deviceId: deviceA, card: made, seed: seedB })).toBe('unopenable');
    expect(openCard({ owner: keyA, deviceId: deviceB, card: made, seed: seedB })).toBe('unopenable');
  });

  it('[PEER-102] has a new key with every upload: a removed peer cannot open the next one', () => {
    const random = counted();
    const [removed, stays] = [keyOf(1), keyB];
    const before = sealed([removed, stays], random);
    const after = sealed([stays], random);
    expect(openCard({ ...owner, card: before, seed: seedOf(1) })).toEqual(record);
    expect(openCard({ ...owner, card: after, seed: seedB })).toEqual(record);
    expect(openCard({ ...owner, card: after, seed: seedOf(1) })).toBe('unopenable');
    // Nor with the entry, and so the key, that he had: it stands in place of the one that is left.
    for (const at of [7, 87]) {
      const swapped = new Uint8Array(after);
      swapped.set(before.subarray(at, at + 80), 7);
      expect(openCard({ ...owner, card: swapped, seed: seedOf(1) })).toBe('unopenable');
    }
    // The same upload again, with other random bytes, is nowhere the same.
    const again = sealed([stays], random);
    expect(again.subarray(7, 39)).not.toEqual(after.subarray(7, 39));
    expect(again.subarray(87)).not.toEqual(after.subarray(87));
  });

  it('is made alike by a second implementation, and opened by it', async () => {
    const key = seedOf(0x5a);
    const start = Buffer.concat([Buffer.from('pbc1'), Buffer.from([1, 0, 1])]);
    const bytesB = keyBytes(keyB) as Uint8Array;
    const bound = {
      info: Buffer.concat([Buffer.from('postbell-1 card\0'), bytesB]),
      aad: Buffer.concat([
        Buffer.from('pbc1'),
        Buffer.from([1]),
        keyBytes(keyA) as Uint8Array,
        fromHex(deviceA),
      ]),
    };
    const recipient = exchangePublicOf(bytesB)?.bytes as Uint8Array;
    const { enc, ciphertext } = await plainSeal({ ...bound, recipient, plaintext: key, ikm: seedOf(7) });
    const aad = Buffer.concat([start, enc, ciphertext]);
    const cipher = createCipheriv('chacha20-poly1305', key, Buffer.alloc(12), { authTagLength: 16 });
    cipher.setAAD(aad, { plaintextLength: 512 });
    const body = Buffer.concat([cipher.update(plainPadded(record)), cipher.final(), cipher.getAuthTag()]);
    const theirs = Buffer.concat([aad, body]);
    expect(openCard({ ...owner, card: theirs, seed: seedB })).toEqual(record);

    const given = [key, seedOf(7)];
    const ours = sealed([keyB], () => given.shift() as Uint8Array);
    expect(toHex(ours)).toBe(toHex(theirs));
    const wrapped = { ...bound, enc: ours.subarray(7, 39), ciphertext: ours.subarray(39, 87) };
    expect(toHex(await plainOpen(exchangeSecretBytes(seedB), wrapped))).toBe(toHex(key));
  });

  it('says nothing by the order of its entries', () => {
    const keys = Array.from({ length: 8 }, (_, n) => keyOf(n + 1));
    const placeOfFirst = (start: number, recipients: readonly string[]): number => {
      const made = sealed(recipients, counted(start));
      const places = Array.from({ length: 8 }, (_, at) => made.subarray(7 + at * 80, 87 + at * 80));
      const encs = places.map((entry) => toHex(entry.subarray(0, 32)));
      expect(encs).toEqual([...encs].sort());
      return places.findIndex((entry) => opensEntry(entry, seedOf(1)));
    };
    const places = new Set(Array.from({ length: 12 }, (_, n) => placeOfFirst(n * 100, keys)));
    expect(places.size).toBeGreaterThan(3);
  });

  it('of nobody is opened by nobody', () => {
    expect(openCard({ ...owner, card: sealed([]), seed: seedB })).toBe('unopenable');
  });

  it('has at most 256 recipients and 64 KiB', () => {
    const many = Array.from({ length: 256 }, () => keyB);
    const largest = sealed(many);
    expect(largest.length).toBe(7 + 256 * 80 + 512 + 16);
    expect(openCard({ ...owner, card: largest, seed: seedB })).toEqual(record);
    expect(sealCard({ ...owner, record, recipients: [...many, keyOf(1)], random: counted() })).toBe(
      'too_many',
    );
    const wide = (bytes: number) =>
      sealCard({ ...owner, record: new Uint8Array(bytes), recipients: many, random: counted() });
    expect((wide(32_764) as Uint8Array).length).toBe(7 + 256 * 80 + 32_768 + 16);
    expect(wide(32_765)).toBe('too_large');
  });

  it.each<[string, (good: Uint8Array) => Uint8Array, string]>([
    ['no bytes', () => new Uint8Array(), 'framing'],
    ['the start alone', (good) => good.subarray(0, 7), 'framing'],
    ['another magic', (good) => patched(good, 3, 0x32), 'framing'],
    ['the magic of items', (good) => patched(good, 2, 0x73), 'framing'],
    ['an unknown suite', (good) => patched(good, 4, 2), 'suite'],
    ['more entries than it has', (good) => patched(good, 5, 1), 'framing'],
    ['257 entries counted', (good) => patched(patched(good, 5, 1), 6, 1), 'framing'],
    ['one entry less counted', (good) => patched(good, 6, 1), 'unopenable'],
    ['no entry counted', (good) => patched(good, 6, 0), 'unopenable'],
    ['more than 64 KiB', (good) => Buffer.concat([good, new Uint8Array(65_536)]), 'framing'],
    ['a byte less', (good) => good.subarray(0, -1), 'unopenable'],
    ['a byte more', (good) => Buffer.concat([good, new Uint8Array(1)]), 'unopenable'],
    [
      'a changed entry of somebody else',
      (good) => patched(good, 7 + 32, good[39] === 0 ? 1 : 0),
      'unopenable',
    ],
    ['a changed body', (good) => patched(good, good.length - 20, (good.at(-20) as number) ^ 1), 'unopenable'],
  ])('with %s is not opened', (_, change, reason) => {
    const good = sealed([keyB, keyOf(1)]);
    expect(openCard({ ...owner, card: change(good), seed: seedB })).toBe(reason);
  });
});

function patched(bytes: Uint8Array, at: number, value: number): Uint8Array {
  const changed = new Uint8Array(bytes);
  changed[at] = value;
  return changed;
}

/** Whether an entry is for this identity, by the suite itself. */
function opensEntry(entry: Uint8Array, seed: Uint8Array): boolean {
  const identity = keyBytes(signerOf(seed).key) as Uint8Array;
  const bound = {
    info: Buffer.concat([Buffer.from('postbell-1 card\0'), identity]),
    aad: Buffer.concat([
      Buffer.from('pbc1'),
      Buffer.from([1]),
      keyBytes(keyA) as Uint8Array,
      fromHex(deviceA),
    ]),
  };
  const own = ownKeysOf(seed).exchange;
  return suiteOf(1)?.open(own, entry.subarray(0, 32), bound, entry.subarray(32)) !== undefined;
}

describe('suites', () => {
  it('[PEER-092] are picked as the highest that both know, or none; another magic or suite is not guessed at', () => {
    expect(suitesKnown).toEqual([1]);
    expect(pickSuite([1])).toBe(1);
    expect(pickSuite([7, 1, 3])).toBe(1);
    expect(pickSuite([2, 255])).toBeUndefined();
    expect(pickSuite([])).toBeUndefined();
    for (const number of [0, 2, 255, undefined]) expect(suiteOf(number)).toBeUndefined();

    const p1 = signRecord(vectors[0]?.record as WireRecord, signerOf(seedA));
    const item = { record: p1, to: keyB, queueId: deviceB, ephemeral: seedOf(9) };
    const good = sealItem(item);
    expect(sealItem({ ...item, suite: pickSuite([9, 1]) as number })).toEqual(good);
    expect(() => sealItem({ ...item, suite: 2 })).toThrow('one that is known');
    for (const suite of [0, 2, 255])
      expect(openItem({ item: patched(good, 4, suite), seed: seedB, queueId: deviceB })).toBe('suite');
    for (const magic of [0x30, 0x32])
      expect(openItem({ item: patched(good, 3, magic), seed: seedB, queueId: deviceB })).toBe('framing');
    expect(verifyRecord(p1)).toBe(true);
    const newer = Buffer.from(p1);
    newer.write('postbell-2', 'latin1');
    expect(verifyRecord(newer)).toBe(false);
    expect(readFields(newer)).toBe('malformed');
  });
});
