// What holds of every record, and of any bytes at all. FUZZ_RUNS tries each that many times.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { signerOf, verify } from '../../src/crypto/ed25519.ts';
import { ownKeysOf } from '../../src/crypto/exchange-key.ts';
import { deriveKeyPair, hpkeOpen, hpkeSeal } from '../../src/crypto/hpke.ts';
import { readRequestSignature, signRequest, verifyRequest } from '../../src/crypto/http-signature.ts';
import { signatureBytes } from '../../src/crypto/key-text.ts';
import { publicKeyOf } from '../../src/crypto/platform-key.ts';
import { signRecord, verifyRecord } from '../../src/crypto/record.ts';
import { openCard } from '../../src/crypto/sealed-card.ts';
import { openItem, sealItem } from '../../src/crypto/sealed-item.ts';
import { base64url, bytesOfBase64url } from '../../src/protocol/base64url.ts';
import { checkClaimedName } from '../../src/protocol/names/petname.ts';
import { nameOf, readName } from '../../src/protocol/scope.ts';
import { readFields } from '../../src/protocol/wire/decode.ts';
import { fieldRows } from '../../src/protocol/wire/field-table.ts';
import { readHeader } from '../../src/protocol/wire/header.ts';
import { pad, unpad } from '../../src/protocol/wire/padding.ts';
import type { ReceiptFact, WireRecord } from '../../src/protocol/wire/record.ts';
import { deviceA, deviceB, keyA, keyB, seedA, seedB, vectors } from '../vectors/postbell-1.ts';
import { fromHex, plainBody, plainOpen, plainSeal, plainSigned, toHex } from './independent.ts';
import { runs } from './runs.ts';

const signer = signerOf(seedA);

const text = (maxLength: number) => fc.string({ unit: 'binary', minLength: 1, maxLength });
const name = text(60)
  .map(nameOf)
  .filter((value) => readName('name', value) === value);
const claimed = text(40)
  .map((value) => value.normalize('NFC'))
  .filter((value) => checkClaimedName(value) === undefined);
const hexOf = (bytes: number) => fc.uint8Array({ minLength: bytes, maxLength: bytes }).map(toHex);
const uuid = hexOf(16).map((hex) => hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-'));
const time = fc.maxSafeNat();
const payload = fc.json({ stringUnit: 'binary' });
const relays = fc.uniqueArray(
  fc.constantFrom('https://a.example', 'https://b.example:1', 'http://[::1]:9', 'http://127.0.0.1:7420'),
  { minLength: 1, maxLength: 4 },
);
const byte = fc.nat(255);
const suites = fc.array(byte, { minLength: 1, maxLength: 8 });
const facts: readonly ReceiptFact['fact'][] = [
  ...(['unknown', 'live', 'away', 'deaf', 'nearly_full'] as const).map(
    (detail) => ({ kind: 'stored', detail }) as const,
  ),
  ...(['fetched', 'ingested'] as const).map((detail) => ({ kind: 'intake', detail }) as const),
  { kind: 'ack', detail: 'ack' },
  ...(['accepted', 'rejected', 'completed', 'cancelled', 'deferred'] as const).map(
    (detail) => ({ kind: 'disposition', detail }) as const,
  ),
  ...(['malformed', 'too_large', 'expired', 'reserved', 'unknown_field', 'policy', 'stale'] as const).map(
    (detail) => ({ kind: 'refused', detail }) as const,
  ),
];

const messageFields = fc.record(
  {
    project: name,
    recipient: name,
    target_kind: fc.constantFrom('principal', 'session'),
    content_type: text(32),
    payload,
    sender: text(60),
    privacy: fc.constantFrom('private', 'team'),
    expires_at_ms: time,
    hops: byte,
    root_id: uuid,
    from_device: hexOf(16),
    intended_session: name,
    status: fc.constantFrom('update', 'needs_input', 'result', 'failed', 'canceled'),
    task_id: text(60),
    reply_to: uuid,
    correlation_id: text(60),
    chain: fc.array(hexOf(8), { minLength: 1, maxLength: 16 }),
    from_session: name,
    quiet: fc.constant(true),
  },
  {
    requiredKeys: [
      'project',
      'recipient',
      'target_kind',
      'content_type',
      'payload',
      'sender',
      'privacy',
      'expires_at_ms',
      'hops',
      'root_id',
      'from_device',
    ],
  },
);
const fact = fc.record({ message_id: uuid, fact: fc.constantFrom(...facts), time_ms: time });
const pairing = { from_device: hexOf(16), from_relays: relays, suites };
const session = fc.record({
  session_id: name,
  principal: name,
  project: name,
  host_kind: fc.constantFrom('claude', 'codex', ''),
  directory: text(40),
  git: text(40),
  work_summary: text(40),
  bell: text(10),
  generation: fc.maxSafeNat(),
});
const fieldsOf = {
  message: messageFields,
  receipt: fc.record({ from_device: hexOf(16), facts: fc.array(fact, { minLength: 1, maxLength: 64 }) }),
  pair_request: fc.record({ ...pairing, name: claimed }),
  pair_accept: fc.record({ ...pairing, name: claimed, request_id: uuid }),
  route: fc.record(pairing),
  query: fc.record({ from_device: hexOf(16), ids: fc.array(uuid, { minLength: 1, maxLength: 64 }) }),
  card: fc.record({ sessions: fc.array(session, { maxLength: 8 }) }),
};
const records: fc.Arbitrary<WireRecord> = fc.oneof(
  ...Object.entries(fieldsOf).map(([type, fields]) =>
    fc
      .record({
        type: fc.constant(type),
        from: fc.constant(keyA),
        to: type === 'card' ? fc.constant(undefined) : fc.constantFrom(keyA, keyB),
        time_ms: time,
        id: uuid,
        fields: fields as fc.Arbitrary<object>,
      })
      .map((record) => record as unknown as WireRecord),
  ),
);

/** Without prototypes of their own, as they are compared. */
const plain = (value: unknown): unknown => structuredClone(value);

describe('every record', () => {
  it('is read as it was written, and names no field twice', () => {
    const seen = new Set<string>();
    fc.assert(
      fc.property(records, (record) => {
        for (const field of Object.keys(record.fields)) seen.add(field);
        const signed = signRecord(record, signer);
        const { fields: _, ...header } = record;
        expect(readHeader(signed)).toMatchObject({ header: plain(header) as object, flags: 0 });
        expect(readFields(signed)).toEqual(plain(record));
        expect(verifyRecord(signed)).toBe(true);
      }),
      { numRuns: runs(400) },
    );
    // The search has been everywhere.
    expect([...seen].sort()).toEqual(fieldRows.map((row) => row.name).sort());
  });

  it('fails its verification with any one byte changed', () => {
    fc.assert(
      fc.property(records, fc.nat(), fc.integer({ min: 1, max: 255 }), (record, where, by) => {
        const signed = signRecord(record, signer);
        const at = where % signed.length;
        signed[at] = (signed[at] as number) ^ by;
        expect(verifyRecord(signed)).toBe(false);
      }),
      { numRuns: runs(400) },
    );
  });

  it('comes out of its item, and a changed item is not opened', () => {
    const random = fc.uint8Array({ minLength: 32, maxLength: 32 });
    fc.assert(
      fc.property(records, random, fc.nat(), (record, ephemeral, where) => {
        const signed = signRecord(record, signer);
        const item = sealItem({ record: signed, to: keyB, queueId: deviceB, ephemeral });
        expect(openItem({ item, seed: seedB, queueId: deviceB })).toEqual(signed);
        const at = where % item.length;
        item[at] = (item[at] as number) ^ 1;
        expect(openItem({ item, seed: seedB, queueId: deviceB })).toBeTypeOf('string');
      }),
      { numRuns: runs(150) },
    );
  });
});

describe('any bytes', () => {
  const bytes = fc.uint8Array({ maxLength: 700 });
  const magic = fc
    .constantFrom('pbs1\x01', 'pbc1\x01', 'postbell-1\0\x01\0')
    .map((start) => Buffer.from(start, 'latin1'));
  const started = fc.tuple(magic, bytes).map(([start, rest]) => new Uint8Array(Buffer.concat([start, rest])));
  const owner = { owner: keyA, deviceId: deviceA };

  it('are refused, never thrown at', () => {
    fc.assert(
      fc.property(fc.oneof(bytes, started), (received) => {
        readHeader(received);
        expect(verifyRecord(received)).toBe(false);
        readFields(received);
        unpad(received);
        expect(openItem({ item: received, seed: seedB, queueId: deviceB })).toBeTypeOf('string');
        expect(openCard({ ...owner, card: received, seed: seedB })).toBeTypeOf('string');
        expect(verify(received.subarray(0, 32), received, received.subarray(-64))).toBe(false);
      }),
      { numRuns: runs(400) },
    );
  });

  it('as the value of any field are refused, or read as what is written so', () => {
    const tags = fc.constantFrom(...fieldRows.map(({ tag }) => tag), 0, 21, 38, 127, 128, 255);
    fc.assert(
      fc.property(
        records,
        tags,
        fc.oneof(
          bytes,
          text(300).map((value) => new TextEncoder().encode(value)),
        ),
        (record, tag, value) => {
          const signed = signRecord(record, signer);
          const body = signed.subarray(0, -64);
          const kept = cut(body).filter(([known]) => known !== tag);
          const fields = [...kept, [tag, `0x${toHex(value)}`] as const].sort(([a], [b]) => a - b);
          const { type, to, time_ms, id } = record;
          const changed = plainBody({ type: typeNumbers[type], from: keyA, to, time: time_ms, id, fields });
          const read = readFields(plainSigned(changed, seedA));
          if (typeof read === 'string' || tag >= 128) return;
          // What is read has one writing but for JSON, whose text stands in a card as it likes.
          if (tag !== 37) expect(toHex(signRecord(read, signer).subarray(0, -64))).toBe(toHex(changed));
        },
      ),
      { numRuns: runs(400) },
    );
  });

  it('have one text in base64url, and one padding', () => {
    fc.assert(
      fc.property(bytes, (given) => {
        expect(base64url(given)).toBe(Buffer.from(given).toString('base64url'));
        expect(bytesOfBase64url(base64url(given))).toEqual(given);
        expect(unpad(pad(given))).toEqual(given);
      }),
      { numRuns: runs(300) },
    );
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.base64String(), fc.stringMatching(/^[\w-]{0,50}$/)), (given) => {
        const read = bytesOfBase64url(given);
        if (read !== undefined) expect(base64url(read)).toBe(given);
      }),
      { numRuns: runs(300) },
    );
  });

  it('are sealed and opened both ways between this product and another library', async () => {
    const some = fc.uint8Array({ maxLength: 300 });
    const thirtyTwo = fc.uint8Array({ minLength: 32, maxLength: 32 });
    await fc.assert(
      fc.asyncProperty(some, some, some, thirtyTwo, thirtyTwo, async (info, aad, plaintext, ikm, seed) => {
        const own = ownKeysOf(new Uint8Array(seed)).exchange;
        const secret = new Uint8Array(
          Buffer.from(own.secret.export({ format: 'jwk' }).d as string, 'base64url'),
        );
        const told = { bytes: own.bytes, key: publicKeyOf('X25519', own.bytes) };
        const ours = hpkeSeal(told, ikm, { info, aad }, plaintext);
        const theirs = await plainSeal({ recipient: own.bytes, info, aad, plaintext, ikm });
        expect(toHex(ours?.enc as Uint8Array)).toBe(toHex(theirs.enc));
        expect(toHex(deriveKeyPair(ikm).bytes)).toBe(toHex(theirs.enc));
        expect(toHex(ours?.ciphertext as Uint8Array)).toBe(toHex(theirs.ciphertext));
        expect(hpkeOpen(own, theirs.enc, { info, aad }, theirs.ciphertext)).toEqual(plaintext);
        expect(await plainOpen(secret, { ...theirs, info, aad })).toEqual(plaintext);
      }),
      { numRuns: runs(30) },
    );
  });
});

const typeNumbers = {
  message: 1,
  receipt: 2,
  pair_request: 3,
  pair_accept: 4,
  route: 5,
  query: 6,
  card: 7,
} as const;

/** The fields of a sound body, as the second implementation takes them. */
function cut(body: Uint8Array): (readonly [number, string])[] {
  const fields: (readonly [number, string])[] = [];
  for (let at = 103; at < body.length; ) {
    const length = Buffer.from(body).readUInt32BE(at + 1);
    fields.push([body[at] as number, `0x${toHex(body.subarray(at + 5, at + 5 + length))}`]);
    at += 5 + length;
  }
  return fields;
}

describe('signatures', () => {
  it('[PEER-091] of records of each type, and of requests to a relay, are kept apart', () => {
    const request = { method: 'GET', authority: 'relay.example', path: '/v1/x', query: '' };
    const headers = signRequest({ ...request, created: 1, nonce: new Uint8Array(16), signer });
    const read = readRequestSignature({
      signatureInput: headers['signature-input'],
      signature: headers.signature,
      contentDigest: undefined,
    });
    if (typeof read === 'string') throw new Error(read);
    const nothing = new Uint8Array();
    expect(verifyRequest(read, request, nothing)).toBeUndefined();

    for (const { record, signature } of vectors.filter((one) => one.record.from === keyA)) {
      const signed = signRecord(record, signer);
      expect(verifyRecord(signed)).toBe(true);
      for (let type = 1; type <= 8; type += 1) {
        const other = new Uint8Array(signed);
        other[11] = type;
        expect([type, verifyRecord(other)]).toEqual([type, other[11] === signed[11]]);
      }
      // A signature in the other's place, and what was signed there in the record's.
      const ofRecord = signatureBytes(signature) as Uint8Array;
      expect(verifyRequest({ ...read, signature: ofRecord }, request, nothing)).toBe('signature');
      const swapped = new Uint8Array(signed);
      swapped.set(read.signature, signed.length - 64);
      expect(verifyRecord(swapped)).toBe(false);
    }
    // Soundly signed by the same key, and no record: other versions, a base of a request, another dialect.
    const body = signRecord(vectors[0]?.record as WireRecord, signer).subarray(0, -64);
    const others = [
      Buffer.concat([Buffer.from('postbell-2\0'), body.subarray(11)]),
      Buffer.concat([Buffer.from('POSTBELL-1\0'), body.subarray(11)]),
      body.subarray(11),
      Buffer.from(`"@method": GET\n"@authority": ${'a'.repeat(300)}`),
      Buffer.concat([Buffer.from('interlink-v2\0'), body]),
    ];
    for (const said of others) {
      const signature = signer.sign(said);
      const whole = new Uint8Array(Buffer.concat([said, signature]));
      expect(verify(fromHex(Buffer.from(keyA, 'base64url').toString('hex')), said, signature)).toBe(true);
      expect(verifyRecord(whole)).toBe(false);
    }
  });
});
