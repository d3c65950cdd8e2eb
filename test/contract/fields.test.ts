// Closed field lists, and the shape of what is refused.

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { fetchMessage } from '../../src/mailbox/fetch.ts';
import { describeError, Fault, isErrorCode, Refusal } from '../../src/protocol/errors.ts';
import { type Fields, readFields } from '../../src/protocol/fields.ts';
import { makeId } from '../../src/protocol/id.ts';
import { acknowledgeFields, pollFields, receiveFields, sendFields } from '../../src/protocol/requests.ts';
import { seededRandom } from './clock.ts';
import { letter, ok, openScene, posted, refused } from './desk.ts';

const sample = {
  name: { kind: 'name', required: true, about: '' },
  text: { kind: 'text', max: 3, about: '' },
  choice: { kind: 'choice', choices: ['a', 'b'], about: '' },
  whole: { kind: 'integer', min: 1, max: 5, about: '' },
  flag: { kind: 'flag', about: '' },
  value: { kind: 'json', about: '' },
  list: { kind: 'list', about: '' },
} as const satisfies Fields;

describe('a closed list of fields', () => {
  it('reads what fits', () => {
    const given = {
      name: ' x ',
      text: 'abc',
      choice: 'b',
      whole: 5,
      flag: false,
      value: { a: null },
      list: [1],
    };
    expect(ok(readFields(sample, given))).toEqual({ ...given, name: 'x' });
  });

  it.each([
    ['text', ''],
    ['text', 'abcd'],
    ['text', 7],
    ['choice', 'c'],
    ['choice', ['a']],
    ['whole', 0],
    ['whole', 6],
    ['whole', 1.5],
    ['whole', '1'],
    ['whole', Number.NaN],
    ['flag', 'true'],
    ['flag', 0],
    ['list', {}],
    ['list', 'a'],
    ['name', ['x']],
    ['name', {}],
  ])('refuses %s = %j', (field, value) => {
    expect(refused(readFields(sample, { name: 'x', [field]: value }))).toMatchObject({
      code: 'invalid_request',
      details: { field },
    });
  });

  it('takes null for absent, except where any JSON is a value', () => {
    const nulls = { name: 'x', text: null, choice: null, whole: null, flag: null, list: null, value: null };
    expect(ok(readFields(sample, nulls))).toEqual({ name: 'x', value: null });
    expect(refused(readFields(sample, { name: null })).details).toEqual({ field: 'name' });
    expect(ok(readFields(sample, { name: 'x', value: undefined }))).toEqual({ name: 'x' });
  });

  it('refuses what it does not know, before anything else, a null included', () => {
    for (const key of ['other', '__proto__', 'constructor', 'toString', 'NAME', ''])
      expect(refused(readFields(sample, JSON.parse(`{${JSON.stringify(key)}: null}`)))).toMatchObject({
        code: 'invalid_request',
        details: { field: key },
      });
    for (const input of [null, [], 'x', 5, undefined])
      expect(refused(readFields(sample, input)).code).toBe('invalid_request');
  });

  it('[MSG-018] of a send requires what it requires, fills in the rest, and takes nothing else', async () => {
    for (const field of ['project', 'sender', 'recipient', 'idempotency_key', 'payload']) {
      const { [field]: _, ...rest } = letter();
      expect(refused(readFields(sendFields, rest))).toMatchObject({
        code: 'invalid_request',
        details: { field },
      });
    }
    const key = (idempotency_key: string) => readFields(sendFields, letter({ idempotency_key }));
    for (const fits of ['k', 'k'.repeat(200)]) expect(ok(key(fits)).idempotency_key).toBe(fits);
    for (const unfit of ['', 'k'.repeat(201)])
      expect(refused(key(unfit)).details).toEqual({ field: 'idempotency_key' });
    for (const field of ['sender_host', 'source_host', 'transport', 'provenance', 'session', 'actor'])
      expect(refused(readFields(sendFields, letter({ [field]: 'x' }))).details).toEqual({ field });
    const sent = await posted(await openScene());
    expect(sent).toMatchObject({ target_kind: 'principal', content_type: 'text/plain', privacy: 'private' });
  });

  it('[MSG-026] of a status and a task takes their values and no other', () => {
    for (const status of ['update', 'needs_input', 'result', 'failed', 'canceled'])
      expect(ok(readFields(sendFields, letter({ status }))).status).toBe(status);
    for (const status of ['cancelled', 'done', 'Update', '', 1, ['result']])
      expect(refused(readFields(sendFields, letter({ status }))).details).toEqual({ field: 'status' });
    for (const task_id of ['', 'x'.repeat(256), 7])
      expect(refused(readFields(sendFields, letter({ task_id }))).details).toEqual({ field: 'task_id' });
    expect(ok(readFields(sendFields, letter({ task_id: 'x'.repeat(255) }))).task_id).toHaveLength(255);
  });

  it('[MSG-026] of a status and a task change nothing else of what is stored and fetched', async () => {
    const desk = await openScene();
    const seen = new Set<string>();
    for (const status of [undefined, 'update', 'needs_input', 'result', 'failed', 'canceled'])
      for (const task_id of [undefined, `task of ${status}`]) {
        const over = { ...(status !== undefined && { status }), ...(task_id !== undefined && { task_id }) };
        const { message_id } = await posted(desk, over);
        const fetched = ok(fetchMessage(desk, { project: 'shop', recipient: 'bob', message_id }));
        expect(fetched).toMatchObject(over);
        const { status: _, task_id: __, message_id: ___, delivery_id, event_id, ...rest } = fetched;
        const delivery = 'SELECT recipient, target_kind, intended_session, expires_at, open FROM delivery';
        seen.add(JSON.stringify([rest, desk.rows(`${delivery} WHERE delivery_id = ?`, delivery_id)]));
        expect(event_id).toMatch(/^evt_/);
      }
    expect([...seen]).toHaveLength(1);
  });

  it('takes one recipient, not a list', () => {
    expect(refused(readFields(sendFields, letter({ recipient: ['bob', 'carol'] }))).code).toBe(
      'invalid_request',
    );
    for (const field of ['recipients', 'topic', 'channel'])
      expect(refused(readFields(sendFields, letter({ [field]: 'x' }))).details).toEqual({ field });
    for (const recipient of ['a,b', '*', 'a, b', '@all'])
      expect(ok(readFields(sendFields, letter({ recipient }))).recipient).toBe(recipient);
  });

  it.each([
    ['idempotency_key', sendFields, 200],
    ['sender', sendFields, 200],
    ['task_id', sendFields, 255],
    ['cursor', pollFields, 160],
    ['notification_id', receiveFields, 255],
  ] as [string, Fields, number][])('limits %s', (field, fields, max) => {
    const base =
      fields === sendFields ? letter() : fields === pollFields ? { project: 'p', recipient: 'r' } : {};
    const given = (count: number) => readFields(fields, { ...base, [field]: '\u{1f426}'.repeat(count) });
    for (const count of [1, max - 1, max]) ok(given(count));
    for (const count of [0, max + 1]) expect(refused(given(count)).details).toEqual({ field });
  });

  it('limits counts and waits at both ends', () => {
    const scope = { project: 'p', recipient: 'r' };
    for (const limit of [1, 100]) ok(readFields(pollFields, { ...scope, limit }));
    for (const wait_ms of [0, 30_000]) ok(readFields(pollFields, { ...scope, wait_ms }));
    for (const wrong of [
      { limit: 0 },
      { limit: 101 },
      { wait_ms: -1 },
      { wait_ms: 30_001 },
      { wait_ms: '5' },
    ])
      expect(refused(readFields(pollFields, { ...scope, ...wrong })).code).toBe('invalid_request');
    expect(refused(readFields(acknowledgeFields, { messages: 'x' })).code).toBe('invalid_request');
  });
});

describe('a code', () => {
  /** code, fault and retryable of the table in the specification. */
  const page = readFileSync(new URL('../../docs/spec/messages.md', import.meta.url), 'utf8');
  const rows = page
    .slice(page.indexOf('## Error codes'), page.indexOf('## Limits'))
    .split('\n')
    .map((line) => line.split('|').map((cell) => cell.trim()))
    .filter((cells) => cells.length === 9 && cells[1]?.startsWith('`'))
    .flatMap((cells) =>
      [...(cells[1] as string).matchAll(/`([a-z0-9_]+)`/g)].map((code) => ({
        code: code[1] as string,
        fault: cells[3] as string,
        retryable: cells[4] !== 'no',
      })),
    );
  const known = rows.flatMap(({ code, ...row }) => (isErrorCode(code) ? [{ code, ...row }] : []));

  it('of the closed list has the fault and the retry of its row', () => {
    expect(known.length).toBeGreaterThan(40);
    for (const { code, fault, retryable } of known)
      expect(describeError(new Refusal(code, 'text'))).toMatchObject({ code, fault, retryable });
    for (const code of ['toString', '__proto__', 'constructor', '', null, 7])
      expect(isErrorCode(code)).toBe(false);
  });

  it('is shown with its message, hint and details; a refusal and a fault alike', () => {
    const details = { field: 'payload' };
    for (const error of [
      new Refusal('invalid_request', 'why', details),
      new Fault('invalid_request', 'why', { details }),
    ])
      expect(describeError(error)).toEqual({
        code: 'invalid_request',
        message: 'why',
        fault: 'caller',
        retryable: false,
        hint: expect.stringMatching(/^change the call/),
        details,
      });
    expect(Object.hasOwn(describeError(new Refusal('usage', 'x')), 'details')).toBe(false);
  });

  it('[MSG-193] of an unknown error is internal_error, and says nothing of its text', () => {
    for (const error of [
      new TypeError('secret body'),
      'secret body',
      null,
      { code: 'usage', message: 'secret body' },
    ]) {
      const shown = describeError(error);
      expect(shown.code).toBe('internal_error');
      expect(JSON.stringify(shown)).not.toContain('secret');
    }
  });
});

describe('an id', () => {
  it('sorts by time, and is the same for the same bytes', () => {
    const { bytes } = seededRandom(1);
    const made = [0, 1, 1_700_000_000_000, 2 ** 48 - 1].map((ms) => makeId('msg', ms, bytes(10)));
    expect([...made].sort()).toEqual(made);
    expect(made.every((id) => /^msg_[0-9a-hjkmnp-tv-z]{26}$/.test(id))).toBe(true);
    expect(makeId('msg', 5, new Uint8Array(10))).toBe('msg_00000000050000000000000000');
    expect(makeId('evt', 0, new Uint8Array(10).fill(255))).toBe('evt_0000000000zzzzzzzzzzzzzzzz');
  });
});
