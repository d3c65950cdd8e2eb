// What no reader takes. The files hold single changes of good records and items, made by the second implementation and signed or
// sealed as they should be: each is refused for its own reason, and for no broken signature.

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { signerOf } from '../../src/crypto/ed25519.ts';
import { exchangePairOf, sharedBytes } from '../../src/crypto/exchange-key.ts';
import { decapsulate } from '../../src/crypto/hpke.ts';
import { publicKeyOf } from '../../src/crypto/platform-key.ts';
import { signRecord, verifyRecord } from '../../src/crypto/record.ts';
import { openItem, sealItem } from '../../src/crypto/sealed-item.ts';
import { readFields } from '../../src/protocol/wire/decode.ts';
import { encodeBody } from '../../src/protocol/wire/encode.ts';
import { readHeader } from '../../src/protocol/wire/header.ts';
import { pad, unpad } from '../../src/protocol/wire/padding.ts';
import type { MessageFields, WireRecord } from '../../src/protocol/wire/record.ts';
import { deviceA, deviceB, keyA, keyB, seedA, seedB, T, vectors } from '../vectors/postbell-1.ts';
import { fromHex, plainBody, plainSigned, toHex } from './independent.ts';

interface RefusedRecord {
  row: string;
  name: string;
  /** What the header alone is refused for; null: it is read. */
  header: 'framing' | 'listing' | null;
  fields: string;
  bytes: string;
}

interface RefusedItem {
  row: string;
  name: string;
  reason: string;
  bytes: string;
}

const fileOf = (name: string): unknown =>
  JSON.parse(readFileSync(new URL(`../vectors/${name}`, import.meta.url), 'utf8'));
const records = fileOf('refused-records.json') as RefusedRecord[];
const items = fileOf('refused-items.json') as RefusedItem[];

const p1 = vectors[0]?.record as WireRecord & { type: 'message' };
const signer = signerOf(seedA);
const signedP1 = signRecord(p1, signer);

/** P1 with other fields; a field given as undefined is left out. */
function message(change: { [Field in keyof MessageFields]?: MessageFields[Field] | undefined }): WireRecord {
  const fields = Object.fromEntries(
    Object.entries({ ...p1.fields, ...change }).filter(([, value]) => value !== undefined),
  );
  return { ...p1, fields: fields as unknown as MessageFields };
}

/** Every record of the file that is about this row is refused as it says there. */
function refusesAll(row: string): void {
  const about = records.filter((one) => one.row === row);
  expect(about.length).toBeGreaterThan(2);
  for (const { name, header, fields, bytes } of about) {
    const received = fromHex(bytes);
    const read = readHeader(received);
    expect([name, typeof read === 'string' ? read : null, readFields(received)]).toEqual([
      name,
      header,
      fields,
    ]);
    // Its signature holds: what is refused is what the record says.
    if (typeof read === 'object') expect([name, verifyRecord(received)]).toEqual([name, true]);
  }
}

function opensNone(row: string): void {
  const about = items.filter((one) => one.row === row);
  expect(about.length).toBeGreaterThan(2);
  for (const { name, reason, bytes } of about)
    expect([name, openItem({ item: fromHex(bytes), seed: seedB, queueId: deviceB })]).toEqual([name, reason]);
}

describe('records', () => {
  it('of the file have each a name of their own', () => {
    expect(new Set(records.map(({ name }) => name)).size).toBe(records.length);
    expect(new Set(items.map(({ name }) => name)).size).toBe(items.length);
  });

  it('[PEER-087] are refused for each single change, and each changed byte breaks the signature', () => {
    refusesAll('PEER-087');
    // Limits that are too long for the file.
    const long = plainBody({
      type: 1,
      from: keyA,
      to: keyB,
      time: T,
      id: '00'.repeat(16),
      fields: (vectors[0]?.fields ?? []).map(([tag, value]) => [
        tag,
        tag === 6 ? `"${'a'.repeat(65_535)}"` : value,
      ]),
    });
    expect(readFields(plainSigned(long, seedA))).toBe('too_large');
    expect(readHeader(new Uint8Array(131_069).fill(1))).toBe('framing');
    const largest = new Uint8Array(131_069);
    largest.set(signedP1.subarray(0, 103));
    expect(readHeader(largest.subarray(0, 131_068))).toBeTypeOf('object');
    expect(readHeader(largest)).toBe('framing');
    for (let at = 0; at < signedP1.length; at += 1) {
      const changed = new Uint8Array(signedP1);
      changed[at] = (changed[at] as number) ^ (1 << (at % 8));
      expect([at, verifyRecord(changed)]).toEqual([at, false]);
    }
    expect(verifyRecord(signedP1)).toBe(true);
  });

  it('[PEER-088] are refused with an empty field', () => {
    refusesAll('PEER-088');
    for (const field of ['task_id', 'correlation_id', 'from_session', 'intended_session', 'sender'] as const)
      expect(() => encodeBody(message({ [field]: '' }))).toThrow('a reader takes');
    expect(() => encodeBody(message({ chain: [] }))).toThrow('a reader takes');
  });

  it('[PEER-089] are refused with a name that is not stored so', () => {
    refusesAll('PEER-089');
    for (const field of ['project', 'recipient', 'intended_session', 'from_session'] as const) {
      for (const value of ['de\u0301mo', ' demo', '/root', 'C:\\work'])
        expect(() => encodeBody(message({ [field]: value }))).toThrow('a reader takes');
      expect(encodeBody(message({ [field]: 'd\u00e9mo' })).length).toBeGreaterThan(100);
    }
  });

  it('[PEER-090] are refused with a time of 2^53 or more', () => {
    refusesAll('PEER-090');
    expect(() => encodeBody({ ...p1, time_ms: 2 ** 53 })).toThrow('whole milliseconds');
    expect(() => encodeBody(message({ expires_at_ms: 2 ** 53 }))).toThrow('whole milliseconds');
    const last = { ...message({ expires_at_ms: 2 ** 53 - 1 }), time_ms: 2 ** 53 - 1 };
    expect(readFields(signRecord(last, signer))).toEqual(last);
  });

  it('[PEER-007] are signed and read with well-formed text alone; lengths are those of its UTF-8', () => {
    refusesAll('PEER-007');
    const device = { from_device: deviceA };
    const pairing = { ...device, from_relays: ['https://r.example'], suites: [1], name: 'a' };
    const header = { from: keyA, to: keyB, time_ms: T, id: p1.id };
    const session = {
      session_id: 's',
      principal: 'p',
      project: 'd',
      host_kind: 'claude',
      directory: '',
      git: '',
      work_summary: '',
      bell: 'none',
      generation: 0,
    };
    const lone = 'a\ud800b';
    const texts = [
      'project',
      'recipient',
      'intended_session',
      'content_type',
      'payload',
      'task_id',
      'correlation_id',
      'sender',
      'privacy',
      'from_session',
    ] as const;
    const all: WireRecord[] = [
      ...texts.map((field) => message({ [field]: field === 'payload' ? `"${lone}"` : lone })),
      { ...header, type: 'route', fields: { ...pairing, from_relays: [`https://${lone}`] } } as WireRecord,
      { ...header, type: 'pair_request', fields: { ...pairing, name: lone } },
      { ...header, type: 'pair_accept', fields: { ...pairing, name: lone, request_id: p1.id } },
      ...Object.keys(session)
        .filter((member) => member !== 'generation')
        .map(
          (member) =>
            ({
              ...header,
              to: undefined,
              type: 'card',
              fields: { sessions: [{ ...session, [member]: lone }] },
            }) as WireRecord,
        ),
    ];
    for (const record of all) expect(() => signRecord(record, signer)).toThrow('invariant broken');
    // What JSON escapes is well-formed.
    const escaped = message({ payload: '"\\ud800"' });
    expect(readFields(signRecord(escaped, signer))).toEqual(escaped);
    // Three bytes each: the length that is written counts bytes, the limit of a name characters.
    const wide = message({ project: '\u20ac'.repeat(200) });
    const body = encodeBody(wide);
    expect([...body.subarray(103, 108)]).toEqual([1, 0, 0, 2, 88]);
    expect(readFields(signRecord(wide, signer))).toEqual(wide);
    expect(() => encodeBody(message({ privacy: '\u20ac'.repeat(11) }))).toThrow('a reader takes');
  });

  it('are not written with what is no field, word or id of theirs', () => {
    for (const [change, why] of [
      [{ shape: 'round' }, 'has no field shape'],
      [{ facts: [] }, 'has no field facts'],
      [{ target_kind: 'session-x' }, 'one of its list'],
      [{ target_kind: 'constructor' }, 'one of its list'],
      [{ hops: 256 }, 'below 256'],
      [{ hops: 0.5 }, 'below 256'],
      [{ expires_at_ms: -1 }, 'whole milliseconds'],
      [{ root_id: p1.id.toUpperCase() }, 'lower-case UUID'],
      [{ root_id: 'x' }, 'lower-case UUID'],
      [{ from_device: deviceA.toUpperCase() }, 'lower-case hex'],
      [{ project: undefined }, 'a reader takes'],
      [{ payload: 'no JSON' }, 'a reader takes'],
    ] as const)
      expect(() => encodeBody(message(change as never))).toThrow(why);
    expect(() => encodeBody({ ...p1, to: undefined })).toThrow('for nobody');
    expect(() => encodeBody({ ...p1, from: 'x' })).toThrow('43 characters');
    expect(() => signRecord({ ...p1, from: keyB }, signer)).toThrow('signed by the key');
  });

  it('hold the largest texts within 16,384 bytes beside the payload', () => {
    const widest = '\u{1f600}';
    const full = message({
      project: widest.repeat(200),
      recipient: widest.repeat(200),
      intended_session: widest.repeat(200),
      content_type: widest.repeat(32),
      task_id: widest.repeat(255),
      correlation_id: widest.repeat(255),
      sender: widest.repeat(200),
      privacy: widest.repeat(8),
      from_session: widest.repeat(200),
      payload: '1',
    });
    const signed = signRecord(full, signer);
    expect(readFields(signed)).toEqual(full);
    expect(signed.length).toBeLessThan(16_384);
  });

  it('pass over extensions, 4,096 bytes of them', () => {
    const fields = [
      ...(vectors[0]?.fields ?? []),
      [128, 'a'.repeat(2_048)],
      [255, 'a'.repeat(2_048)],
    ] as const;
    const body = plainBody({ type: 1, from: keyA, to: keyB, time: T, id: p1.id, fields });
    expect(readFields(plainSigned(body, seedA))).toEqual(p1);
  });
});

describe('sealed items', () => {
  it('[PEER-096] stay shut for another queue or key, and changed', () => {
    opensNone('PEER-096');
    const item = sealItem({
      record: signedP1,
      to: keyB,
      queueId: deviceB,
      ephemeral: new Uint8Array(32).fill(9),
    });
    expect(openItem({ item, seed: seedB, queueId: deviceB })).toEqual(signedP1);
    expect(openItem({ item, seed: seedB, queueId: deviceA })).toBe('unopenable');
    expect(openItem({ item, seed: seedA, queueId: deviceB })).toBe('unopenable');
  });

  it('[PEER-097] are padded to the next power of two, and in no other way', () => {
    opensNone('PEER-097');
    const ephemeral = new Uint8Array(32).fill(9);
    const lengths = (payload: string): number[] => {
      const record = signRecord(message({ payload }), signer);
      const item = sealItem({ record, to: keyB, queueId: deviceB, ephemeral });
      expect(toHex(openItem({ item, seed: seedB, queueId: deviceB }) as Uint8Array)).toBe(toHex(record));
      return [record.length, item.length];
    };
    expect(lengths('1')).toEqual([307, 565]);
    expect(lengths(`"${'a'.repeat(65_534)}"`)).toEqual([65_842, 131_125]);
    const edges = [
      [0, 512],
      [508, 512],
      [509, 1_024],
      [1_020, 1_024],
      [65_532, 65_536],
      [65_533, 131_072],
      [131_068, 131_072],
    ] as const;
    for (const [record, padded] of edges) {
      const bytes = new Uint8Array(record).fill(1);
      expect(pad(bytes).length).toBe(padded);
      expect(toHex(unpad(pad(bytes)) as Uint8Array)).toBe(toHex(bytes));
    }
    expect(() => pad(new Uint8Array(131_069))).toThrow('largest padding');
    expect(openItem({ item: new Uint8Array(131_126), seed: seedB, queueId: deviceB })).toBe('framing');
  });

  it('[PEER-098] stay shut where the exchange gives zeros; another ephemeral key is another item', () => {
    opensNone('PEER-098');
    const own = exchangePairOf(new Uint8Array(32).fill(3));
    const low = items
      .filter(({ row }) => row === 'PEER-098')
      .map(({ bytes }) => fromHex(bytes).subarray(5, 37));
    expect(low.length).toBe(14);
    for (const enc of low) {
      expect(sharedBytes(own.secret, publicKeyOf('X25519', enc))).toBeUndefined();
      expect(decapsulate(enc, own)).toBeUndefined();
    }
    const [one, two] = [1, 2].map((byte) =>
      sealItem({ record: signedP1, to: keyB, queueId: deviceB, ephemeral: new Uint8Array(32).fill(byte) }),
    ) as [Uint8Array, Uint8Array];
    expect(one.subarray(5, 37)).not.toEqual(two.subarray(5, 37));
    expect(one.subarray(37)).not.toEqual(two.subarray(37));
  });

  it('of an unknown magic or suite are named so, never guessed at', () => {
    opensNone('PEER-092');
  });
});
