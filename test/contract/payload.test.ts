// The body of a message: kept to the byte, measured and hashed.

import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fetchMessage } from '../../src/mailbox/fetch.ts';
import { isRefusal } from '../../src/protocol/errors.ts';
import { canonicalJson, type Json, utf8Bytes } from '../../src/protocol/json.ts';
import { limits } from '../../src/protocol/limits.ts';
import { readPayload } from '../../src/protocol/message.ts';
import { inertValue } from '../../src/protocol/untrusted.ts';
import { difference, ok, openScene, post, posted, refused, type Scene } from './desk.ts';

const asJson = { content_type: 'application/json' };

async function roundTrip(desk: Scene, text: string): Promise<string> {
  const { message_id } = await posted(desk, { ...asJson, payload: JSON.parse(text) as Json });
  return JSON.stringify(ok(fetchMessage(desk, { project: 'shop', recipient: 'bob', message_id })).payload);
}

describe('a payload', () => {
  it('[MSG-022] comes back as it was given, in its own key order', async () => {
    const desk = await openScene();
    const texts = [
      'null',
      'true',
      '0.1',
      '""',
      '[]',
      '{}',
      '{"a":null}',
      '{"z":1,"a":{"y":[null,{"x":""}],"b":2}}',
    ];
    const plainKeys = [
      '{"__proto__":{"polluted":true},"constructor":1,"toString":null,"a":[{"__proto__":5}]}',
    ];
    const untrimmed = ['{" a ":" b ","":"\\u0000\\n"}', '"\\ud800"', '1e+300', '[1,2,3]'];
    for (const text of [...texts, ...plainKeys, ...untrimmed]) {
      expect(await roundTrip(desk, text)).toBe(text);
      expect(desk.rows('SELECT payload FROM message ORDER BY seq DESC LIMIT 1')).toEqual([{ payload: text }]);
    }
    expect(await roundTrip(desk, '{"b":1,"10":2,"a":{"x":1,"2":2,"1":3},"2":4}')).toBe(
      '{"2":4,"10":2,"b":1,"a":{"1":3,"2":2,"x":1}}',
    );
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
    const digits = '12345678901234567890';
    expect(await roundTrip(desk, digits)).toBe(String(Number(digits)));
    expect(await roundTrip(desk, `"${digits}"`)).toBe(`"${digits}"`);
    const text = ' \t two\r\nlines \u0000 e\u0301\n';
    const { message_id } = await posted(desk, { payload: text });
    const scope = { project: 'shop', recipient: 'bob', message_id };
    expect(ok(fetchMessage(desk, scope)).payload).toBe(text);
    for (const payload of [5, null, {}, [], true])
      expect(refused(await post(desk, { payload })).code).toBe('invalid_request');
    for (const content_type of ['text/html', 'application/json; charset=utf-8', '', 7])
      expect(refused(await post(desk, { content_type })).code).toBe('invalid_request');
  });

  it('comes back as it was given, whatever JSON it is', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        const value = JSON.parse(text) as Json;
        const stored = ok(readPayload('application/json', value));
        expect(JSON.parse(stored.json)).toEqual(value);
        expect(JSON.parse(stored.canonical)).toEqual(value);
        expect(canonicalJson(JSON.parse(stored.canonical) as Json)).toBe(stored.canonical);
        expect(utf8Bytes(stored.json)).toBe(Buffer.byteLength(stored.json));
      }),
    );
  });

  it.each([
    ['ASCII', 'x', 1],
    ['2-byte characters', '\u00e9', 2],
    ['3-byte characters', '\u20ac', 3],
    ['4-byte characters', '\u{1f426}', 4],
    ['escaped characters', '\n', 2],
  ])('[MSG-023] has at most 65,536 bytes as JSON: %s', async (_, character, bytes) => {
    const desk = await openScene();
    const filled = (room: number) => character.repeat(Math.floor(room / bytes)) + 'x'.repeat(room % bytes);
    for (const room of [65_533, 65_534])
      expect(isRefusal(await post(desk, { payload: filled(room) }))).toBe(false);
    const before = desk.counts();
    expect(refused(await post(desk, { payload: filled(65_535) })).code).toBe('payload_too_large');
    const object = { ...asJson, payload: { a: filled(65_536 - 8 + 1) } };
    expect(refused(await post(desk, object)).code).toBe('payload_too_large');
    expect(difference(before, desk.counts())).toEqual({});
    expect(isRefusal(await post(desk, { ...asJson, payload: { a: filled(65_536 - 8) } }))).toBe(false);
  });

  it('[MSG-024] is hashed in canonical form, so that key order alone is no other content', async () => {
    const desk = await openScene();
    const key = { idempotency_key: 'same', ...asJson };
    const payload = { b: 1, Z: null, a: { '\u{10000}': 1, '\uffff': 2, d: [{ f: 1, e: 2 }] } };
    const first = await posted(desk, { ...key, payload });
    const canonical = '{"Z":null,"a":{"d":[{"e":2,"f":1}],"\u{10000}":1,"\uffff":2},"b":1}';
    const fetched = ok(
      fetchMessage(desk, { project: 'shop', recipient: 'bob', message_id: first.message_id }),
    );
    expect(fetched.payload_sha256).toBe(createHash('sha256').update(canonical).digest('hex'));
    expect(canonicalJson(fetched.payload)).toBe(canonical);
    expect(desk.rows('SELECT payload_sha256 FROM message')).toEqual([
      { payload_sha256: fetched.payload_sha256 },
    ]);
    const turned = { a: { d: [{ e: 2, f: 1 }], '\uffff': 2, '\u{10000}': 1 }, b: 1, Z: null };
    expect((await posted(desk, { ...key, payload: turned })).message_id).toBe(first.message_id);
    const other = await post(desk, { ...key, payload: { ...payload, b: 2 } });
    expect(refused(other).code).toBe('idempotency_conflict');
  });

  it('may be nested so deep and no deeper, whoever reads it: what was stored can be shown', async () => {
    const desk = await openScene();
    const lists = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
    const objects = (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;
    for (const nested of [lists, objects]) {
      const deepest = nested(limits.payloadDepthMax);
      expect(await roundTrip(desk, deepest)).toBe(deepest);
      expect(JSON.stringify(inertValue(JSON.parse(deepest)))).toBe(deepest);
      for (const depth of [limits.payloadDepthMax + 1, 10_000]) {
        const refusal = refused(await post(desk, { ...asJson, payload: JSON.parse(nested(depth)) }));
        expect(refusal).toMatchObject({ code: 'invalid_request', details: { field: 'payload' } });
        expect(refusal.message).toContain(`more than ${limits.payloadDepthMax} deep`);
      }
    }
  });
});
