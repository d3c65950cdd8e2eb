// The router's wire: what each line is read as, and with which code it is refused.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isRefusal } from '../../src/protocol/errors.ts';
import { readDeliver, readIncoming, readRequest, writeFrame } from '../../src/protocol/frames.ts';
import type { Json } from '../../src/protocol/json.ts';

const common = { v: 1, request_id: 'r1', hops: 0 };
const of = { project: 'p', session_id: 's', connection_id: 'c', generation: 1 };
const outcome = { attempt_id: 'a', delivery_id: 'd', connection_id: 'c', generation: 1 };

/** One request of each type, with only what it must have. */
const requests: Record<string, Record<string, Json>> = {
  register: {
    auth_token: 't',
    project: 'p',
    principal_id: 'bob',
    session_id: 's',
    adapter_kind: 'claude-listener',
    bell: 'listener',
    host_kind: 'claude',
    postbell_version: '0.1.0',
  },
  heartbeat: of,
  disconnect: of,
  discover: { auth_token: 't', project: 'p' },
  notify: { auth_token: 't', project: 'p', delivery_id: 'd' },
  host_accept: { ...outcome, content: 'notice', receipt: null },
  host_reject: { ...outcome, failure_code: 'adapter_error' },
  status: { auth_token: 't' },
  stop: { auth_token: 't' },
};
const types = Object.keys(requests);

const request = (type: string, over: Record<string, unknown> = {}): string =>
  JSON.stringify({ ...common, type, ...requests[type], ...over });

function codeOf(line: string): string {
  const { frame } = readRequest(line);
  return isRefusal(frame) ? frame.code : 'taken';
}

describe('a request', () => {
  it.each(types)('is taken with all its fields, and refused without any one of them: %s', (type) => {
    const { frame, request_id } = readRequest(request(type));
    expect(request_id).toBe('r1');
    expect(frame).toEqual({ type, request_id: 'r1', fields: requests[type] });
    for (const field of Object.keys(requests[type] ?? {}))
      expect(`${field} ${codeOf(request(type, { [field]: undefined }))}`).toBe(`${field} invalid_field`);
  });

  it.each(types)('[SES-086] is refused with any field that is not its own: %s', (type) => {
    for (const field of ['payload', 'model', 'constructor', 'toString', ''])
      expect(codeOf(request(type, { [field]: 'x' }))).toBe('unexpected_field');
    const own = request(type).replace('{', '{"__proto__":{"type":"x"},');
    expect(codeOf(own)).toBe('unexpected_field');
  });

  it.each([
    ['not JSON', '{', 'invalid_json'],
    ['no object', '[]', 'invalid_json'],
    ['null', 'null', 'invalid_json'],
    ['nothing', '', 'invalid_json'],
    ['another version', request('status', { v: 2 }), 'unsupported_version'],
    ['a version as text', request('status', { v: '1' }), 'unsupported_version'],
    ['no version', request('status', { v: undefined }), 'unsupported_version'],
    ['an unknown type', request('status', { type: 'shout' }), 'unsupported_type'],
    ['an inherited type', request('status', { type: 'toString' }), 'unsupported_type'],
    ['a type that is none', request('status', { type: ['status'] }), 'unsupported_type'],
    ['no request id', request('status', { request_id: undefined }), 'invalid_frame'],
    ['an empty request id', request('status', { request_id: '' }), 'invalid_frame'],
    ['a request id that is a number', request('status', { request_id: 5 }), 'invalid_frame'],
    ['no hops', request('status', { hops: undefined }), 'invalid_frame'],
    ['hops below 0', request('status', { hops: -1 }), 'invalid_frame'],
    ['broken hops', request('status', { hops: 0.5 }), 'invalid_frame'],
    ['5 hops', request('status', { hops: 5 }), 'hop_limit'],
    ['4 hops', request('status', { hops: 4 }), 'taken'],
    ['an unknown adapter', request('register', { adapter_kind: 'fax' }), 'invalid_field'],
    ['an unknown host', request('register', { host_kind: 'toaster' }), 'invalid_field'],
    ['no lease', request('register', { lease_ms: 0 }), 'invalid_field'],
    ['5 minutes of lease', request('register', { lease_ms: 300_000 }), 'taken'],
    ['more than 5 minutes of lease', request('register', { lease_ms: 300_001 }), 'invalid_field'],
    ['an empty summary', request('heartbeat', { work_summary: '' }), 'taken'],
    ['a null summary', request('heartbeat', { work_summary: null }), 'invalid_field'],
    ['a generation as text', request('heartbeat', { generation: '1' }), 'invalid_field'],
    ['1 card', request('discover', { limit: 1 }), 'taken'],
    ['100 cards', request('discover', { limit: 100 }), 'taken'],
    ['no card', request('discover', { limit: 0 }), 'invalid_field'],
    ['101 cards', request('discover', { limit: 101 }), 'invalid_field'],
    ['very many cards', request('discover', { limit: 1e300 }), 'invalid_field'],
    ['unknown content', request('host_accept', { content: 'rumour' }), 'invalid_field'],
  ])('[SES-086] with %s', (_, line, code) => {
    expect(codeOf(line)).toBe(code);
  });

  it('[HOST-011] names one of the five bells, or is refused as malformed', () => {
    for (const bell of ['listener', 'channel', 'codex-queue', 'acp', 'none'])
      expect(codeOf(request('register', { bell }))).toBe('taken');
    for (const bell of ['gong', 'Listener', '', 7, null, ['none'], 'toString'])
      expect(codeOf(request('register', { bell }))).toBe('invalid_field');
  });

  it('[SES-091] names a failure by 1 to 64 lower-case letters, digits and underscores', () => {
    for (const failure_code of ['a', 'x'.repeat(64), 'codex_queue_timeout', '_9'])
      expect(codeOf(request('host_reject', { failure_code }))).toBe('taken');
    for (const failure_code of ['', 'x'.repeat(65), 'Adapter', 'a b', 'a-b', 'a\n', 'caf\u00e9', 7, null])
      expect(codeOf(request('host_reject', { failure_code }))).toBe('invalid_field');
  });

  it('keeps the id of a refused request, where it could be read', () => {
    expect(readRequest(request('status', { v: 2 })).request_id).toBe('r1');
    expect(readRequest('nonsense').request_id).toBe('');
    expect(readRequest(request('status', { request_id: {} })).request_id).toBe('');
  });
});

describe('what a client reads', () => {
  const read = (frame: unknown) => readIncoming(JSON.stringify(frame));

  it('is an answer, a frame of the router, or invalid', () => {
    expect(read({ ...common, ok: true, delivered: true })).toEqual({
      kind: 'answer',
      request_id: 'r1',
      answer: { ok: true, delivered: true },
    });
    const error = { code: 'store_busy', message: 'locked' };
    const answer = { ok: false, error };
    expect(read({ ...common, ok: false, error })).toEqual({ kind: 'answer', request_id: 'r1', answer });
    expect(read({ ok: false, error })).toEqual({ kind: 'answer', request_id: '', answer });
    expect(read({ type: 'session_superseded', request_id: 'x', generation: 2 })).toEqual({
      kind: 'frame',
      type: 'session_superseded',
      fields: { generation: 2 },
    });
    for (const odd of [
      { ok: true },
      { ok: 1 },
      { ok: false },
      { ok: false, error: { code: 'made_up' } },
      [],
      5,
      null,
    ])
      expect(read(odd)).toEqual({ kind: 'invalid' });
  });

  it('has words for an error only where they are text', () => {
    for (const message of [{ toString: 1 }, [{}], null, 7, undefined]) {
      const incoming = read({ ok: false, error: { code: 'store_busy', message } });
      expect(incoming).toMatchObject({
        kind: 'answer',
        answer: { ok: false, error: { code: 'store_busy' } },
      });
      if (incoming.kind === 'answer' && !incoming.answer.ok)
        expect(typeof incoming.answer.error.message).toBe('string');
    }
  });

  it('is a hand-off only when it lacks nothing', () => {
    const envelope = { type: 'postbell_message_notice', notification_id: 'n' };
    const frame = { ...outcome, content: 'notice', envelope } as const;
    expect(readDeliver({ ...frame, project: 'p' })).toEqual({ ...frame, notification_id: 'n' });
    const whole = {
      ...outcome,
      content: 'full',
      envelope: { type: 'postbell_message', payload: 1 },
    } as const;
    expect(readDeliver({ ...whole, project: 'p' })).toEqual(whole);
    expect(readDeliver({ ...whole, envelope })).toBeUndefined();
    for (const field of Object.keys(frame)) {
      const { [field as keyof typeof frame]: _, ...rest } = frame;
      expect(readDeliver(rest as Record<string, Json>)).toBeUndefined();
    }
    for (const wrong of [
      { envelope: [] },
      { envelope: {} },
      { envelope: null },
      { content: 'x' },
      { generation: 0.5 },
    ])
      expect(readDeliver({ ...frame, ...wrong })).toBeUndefined();
  });
});

describe('any line at all', () => {
  const words = fc.constantFrom(
    'v',
    'type',
    'request_id',
    'hops',
    'ok',
    'error',
    'code',
    'message',
    'toString',
  );
  const values = fc.oneof(
    fc.constantFrom(1, 0, true, false, 'deliver', 'register', 'store_busy', 'session_superseded', null, ''),
    fc.jsonValue({ maxDepth: 2 }),
  );
  const leaf = fc.dictionary(words, values);
  const frames = fc.dictionary(fc.oneof(words, fc.string()), fc.oneof(values, leaf));

  it('is decoded without a throw', () => {
    const lines = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.json(),
      frames.map((frame) => JSON.stringify(frame)),
    );
    const near = fc.tuple(fc.constantFrom(...types), frames).map(([type, frame]) => request(type, frame));
    fc.assert(
      fc.property(fc.oneof(lines, near), (line) => {
        const { request_id, frame } = readRequest(line);
        expect(typeof request_id).toBe('string');
        if (isRefusal(frame)) expect(frame.code).toMatch(/^(invalid|unsupported|unexpected|hop)_/);
        const incoming = readIncoming(line);
        if (incoming.kind === 'frame') readDeliver(incoming.fields);
      }),
      { numRuns: 2_000, seed: 11 },
    );
  });

  it('that was written is one line, and reads back', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary', minLength: 1, maxLength: 20 }),
        fc.jsonValue(),
        (request_id, receipt) => {
          const line = writeFrame({ type: 'host_accept', request_id, ...outcome, content: 'full', receipt });
          expect(line.indexOf('\n')).toBe(line.length - 1);
          const { frame } = readRequest(line);
          const fields = {
            ...outcome,
            content: 'full',
            receipt: JSON.parse(JSON.stringify(receipt)) as Json,
          };
          expect(frame).toEqual({
            type: 'host_accept',
            request_id,
            fields,
          });
        },
      ),
      { numRuns: 200, seed: 12 },
    );
  });
});
