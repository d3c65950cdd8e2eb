// What a name, a text and a session id may hold, in every field of every action.

import fs from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { acknowledge } from '../../src/mailbox/acknowledge.ts';
import { fetchMessage } from '../../src/mailbox/fetch.ts';
import { poll } from '../../src/mailbox/poll.ts';
import { isRefusal } from '../../src/protocol/errors.ts';
import { type Fields, readFields } from '../../src/protocol/fields.ts';
import { readRequest } from '../../src/protocol/frames.ts';
import {
  ackFields,
  acknowledgeFields,
  activationFields,
  cancelFields,
  discoverFields,
  dispositionFields,
  failedFields,
  fetchFields,
  historyFields,
  intakeFields,
  pollFields,
  receiptsFields,
  receiveFields,
  sendFields,
  statusFields,
  summaryFields,
} from '../../src/protocol/requests.ts';
import { isSessionId, isWellFormed, readName } from '../../src/protocol/scope.ts';
import { dispatch } from '../../src/sessions/dispatch.ts';
import { locksIn } from '../../src/store/lock.ts';
import {
  alice,
  attach,
  letter,
  ok,
  openScene,
  posted,
  read,
  refused,
  sessionCaller,
  temporaryDirectory,
} from './desk.ts';
import { openExchange } from './exchange.ts';

/** Every action, with a call that fits. */
const actions: [string, Fields, Record<string, unknown>][] = [
  ['send', sendFields, letter()],
  ['poll', pollFields, { project: 'shop', recipient: 'bob' }],
  ['fetch', fetchFields, { project: 'shop', recipient: 'bob', message_id: 'm' }],
  ['intake', intakeFields, scoped({ state: 'fetched', idempotency_key: 'k' })],
  ['ack', ackFields, scoped({ idempotency_key: 'k' })],
  ['disposition', dispositionFields, scoped({ value: 'accepted', idempotency_key: 'k' })],
  ['activation', activationFields, scoped({ value: 'woken', idempotency_key: 'k' })],
  ['receipts', receiptsFields, scoped({})],
  ['discover', discoverFields, { project: 'shop' }],
  ['receive', receiveFields, { project: 'shop', recipient: 'bob' }],
  ['acknowledge', acknowledgeFields, { project: 'shop', recipient: 'bob', messages: [] }],
  ['history', historyFields, { project: 'shop', recipient: 'bob', peer: 'alice' }],
  ['status', statusFields, { msg_id: 'm' }],
  ['failed', failedFields, { action: 'list' }],
  ['cancel', cancelFields, { project: 'shop', recipient: 'bob', task_id: 't' }],
  ['summary', summaryFields, { summary: 's' }],
];

function scoped(more: Record<string, unknown>): Record<string, unknown> {
  return { project: 'shop', recipient: 'bob', message_id: 'm', ...more };
}

const fieldsOfKind = (kind: 'name' | 'text') =>
  actions.flatMap(([action, fields, call]) =>
    Object.entries(fields)
      .filter(([, field]) => field.kind === kind)
      .map(([field]) => ({ action, field, fields, call })),
  );

describe('the fields that are checked below', () => {
  it('[MSG-013] are all names and all texts of every action', () => {
    const named = (kind: 'name' | 'text') =>
      fieldsOfKind(kind).map(({ action, field }) => `${action}.${field}`);
    expect(named('name')).toEqual([
      'send.project',
      'send.recipient',
      'send.intended_session',
      'poll.project',
      'poll.recipient',
      'fetch.project',
      'fetch.recipient',
      'intake.project',
      'intake.recipient',
      'ack.project',
      'ack.recipient',
      'disposition.project',
      'disposition.recipient',
      'activation.project',
      'activation.recipient',
      'receipts.project',
      'receipts.recipient',
      'discover.project',
      'receive.project',
      'receive.recipient',
      'acknowledge.project',
      'acknowledge.recipient',
      'history.project',
      'history.recipient',
      'cancel.recipient',
      'cancel.project',
    ]);
    expect(named('text')).toEqual([
      'send.sender',
      'send.idempotency_key',
      'send.correlation_id',
      'send.reply_to',
      'send.task_id',
      'send.peer',
      'poll.sender',
      'poll.cursor',
      'fetch.message_id',
      'intake.message_id',
      'intake.idempotency_key',
      'ack.message_id',
      'ack.idempotency_key',
      'ack.host_accept_id',
      'disposition.message_id',
      'disposition.idempotency_key',
      'disposition.detail',
      'activation.message_id',
      'activation.idempotency_key',
      'activation.detail',
      'receipts.message_id',
      'discover.peer',
      'receive.notification_id',
      'history.peer',
      'status.msg_id',
      'status.sender',
      'failed.id',
      'cancel.task_id',
      'cancel.peer',
      'cancel.reason',
      'summary.summary',
    ]);
  });
});

describe('a name', () => {
  it.each(fieldsOfKind('name'))(
    'may not look like an absolute path: $field of $action',
    ({ field, fields, call }) => {
      for (const value of ['/root', '/', 'C:\\work', 'c:/work', '\\\\host\\share', ' /root ']) {
        const refusal = refused(readFields(fields, { ...call, [field]: value }));
        expect(refusal).toMatchObject({ code: 'path_shaped_identifier', details: { field } });
        expect(refusal.message).toContain(field);
        expect(refusal.message).toMatch(/a valid value is "(?:reviewer|shop)"/);
      }
      for (const value of ['team/x', 'c:x', '~/x', './x', '../x', '\\x'])
        expect(isRefusal(readFields(fields, { ...call, [field]: value }))).toBe(false);
    },
  );

  it.each(fieldsOfKind('name'))(
    '[MSG-013] has 1 to 200 characters after it is normalised: $field of $action',
    ({ field, fields, call }) => {
      const given = (value: string) => readFields(fields, { ...call, [field]: value });
      for (const value of ['x', 'x'.repeat(200), '\u{1f426}'.repeat(200), ` ${'e\u0301'.repeat(200)} `])
        expect(isRefusal(given(value))).toBe(false);
      for (const value of [
        '',
        ' \t\n',
        '\u3000',
        'x'.repeat(201),
        '\u{1f426}'.repeat(201),
        '\ud800',
        'a\udc00b',
      ])
        expect(refused(given(value))).toMatchObject({ code: 'invalid_request', details: { field } });
    },
  );

  it.each(fieldsOfKind('name'))(
    '[MSG-009] is composed and trimmed: $field of $action',
    ({ field, fields, call }) => {
      for (const value of [' \tcafe\u0301\n', 'caf\u00e9', '\u3000caf\u00e9 '])
        expect(ok(readFields(fields, { ...call, [field]: value }))).toMatchObject({ [field]: 'caf\u00e9' });
    },
  );

  it.each(fieldsOfKind('text'))(
    '[MSG-013] holds no lone surrogate: $field of $action',
    ({ field, fields, call }) => {
      expect(refused(readFields(fields, { ...call, [field]: 'a\ud800' }))).toMatchObject({
        code: 'invalid_request',
        details: { field },
      });
    },
  );

  it('[MSG-013] holds no lone surrogate in a receipt that is given back', async () => {
    const desk = await openScene();
    await posted(desk);
    for (const item of [
      { sender: 'local', msg_id: '\ud800' },
      { sender: '\ud800', msg_id: 'm' },
    ]) {
      const given = read(acknowledgeFields, { project: 'shop', recipient: 'bob', messages: [item] });
      expect(refused(await acknowledge(desk, given, alice))).toMatchObject({
        code: 'invalid_request',
        details: { field: 'messages' },
      });
    }
  });

  it('[MSG-013] holds no lone surrogate in what a session registers of itself', async () => {
    const desk = await openScene();
    const router = openExchange(desk);
    for (const field of ['project', 'principal_id'])
      expect(refused(await router.ask('s1', { [field]: 'a\ud800' })).code).toBe('invalid_request');
    const told = (work_summary: string) =>
      readRequest(
        JSON.stringify({
          v: 1,
          type: 'heartbeat',
          request_id: 'r',
          hops: 0,
          project: 'shop',
          session_id: 's1',
          connection_id: 'con_1',
          generation: 1,
          work_summary,
        }),
      ).frame;
    expect(ok(told('a\ufffd')).type).toBe('heartbeat');
    expect(refused(told('a\ud800'))).toMatchObject({ details: { field: 'work_summary' } });
    expect(desk.counts()).toMatchObject({ connection: 0, session: 0 });
  });

  it('[MSG-013] may hold one in the payload, whose JSON escapes it', async () => {
    const desk = await openScene();
    const sent = await posted(desk, { payload: 'a\ud800b' });
    expect(desk.rows('SELECT payload FROM message')).toEqual([{ payload: '"a\\ud800b"' }]);
    const { message_id } = sent;
    expect(ok(fetchMessage(desk, { project: 'shop', recipient: 'bob', message_id })).payload).toBe(
      'a\ud800b',
    );
  });

  it('is stable: what was normalised once stays as it is', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 30 }), (text) => {
        const once = readName('project', text);
        if (!isRefusal(once)) expect(readName('project', once)).toBe(once);
        expect(isWellFormed(text)).toBe(Buffer.from(text, 'utf8').toString('utf8') === text);
      }),
    );
  });

  it.each(
    fieldsOfKind('text').filter(({ field }) =>
      ['message_id', 'msg_id', 'correlation_id', 'reply_to'].includes(field),
    ),
  )('[MSG-008] of a message has at most 255 characters: $field of $action', ({ field, fields, call }) => {
    expect(isRefusal(readFields(fields, { ...call, [field]: 'x'.repeat(255) }))).toBe(false);
    expect(refused(readFields(fields, { ...call, [field]: 'x'.repeat(256) })).code).toBe('invalid_request');
  });

  it('[MSG-008] of a receipt has at most 255 characters', async () => {
    const desk = await openScene();
    const call = (msg_id: string) =>
      acknowledge(
        desk,
        { project: 'shop', recipient: 'bob', messages: [{ sender: 'local', msg_id }] },
        alice,
      );
    expect(ok(await call('x'.repeat(255))).unchanged).toBe(1);
    expect(refused(await call('x'.repeat(256))).code).toBe('invalid_request');
  });

  it('[MSG-008] that Postbell makes is opaque ASCII', async () => {
    const desk = await openScene();
    desk.onNotify = ({ project, delivery_id }) => dispatch(desk.board, project, delivery_id);
    await attach(desk, 's1');
    const { message_id } = await posted(desk);
    const messages = [{ sender: 'local', msg_id: message_id }];
    ok(await acknowledge(desk, { project: 'shop', messages }, sessionCaller('s1')));
    const made = Object.entries({
      message: 'message_id',
      delivery: 'delivery_id',
      event: 'event_id',
      connection: 'connection_id',
      attempt: 'attempt_id',
      host_accept: 'host_accept_id',
      receipt: 'receipt_id',
    });
    for (const [table, column] of made) {
      const ids = desk.rows(`SELECT ${column} AS id FROM ${table}`);
      expect(ids).not.toEqual([]);
      for (const { id } of ids) expect(id).toMatch(/^[a-z]+_[0-9a-z]{26}$/);
    }
    for (const { id } of desk.rows('SELECT notification_id AS id FROM reservation'))
      expect(id).toMatch(/^[0-9a-f]{12}$/);
    const { next_cursor } = ok(await poll(desk, { project: 'shop', recipient: 'bob' }));
    expect(next_cursor).toMatch(/^[!-~]+$/);
  });
});

describe('a session id', () => {
  it('[SES-030, INB-148] has 1 to 128 characters, no control characters, and no path meaning as a lock', () => {
    for (const id of ['x', 'x'.repeat(128), '\u{1f426}'.repeat(128), '../x', 'a b'])
      expect(isSessionId(id)).toBe(true);
    for (const id of ['', 'x'.repeat(129), 'a\u0000', 'a\n', '\u009b', '\ud800'])
      expect(isSessionId(id)).toBe(false);
    const directory = path.join(temporaryDirectory(), 'runtime');
    fs.mkdirSync(directory);
    const hostile = [
      '../x',
      '..',
      '.',
      '/etc/x',
      'a/../../x',
      'C:\\x',
      '\u{1f426}'.repeat(128),
      '%2e%2e',
      'x*?',
    ];
    const held = hostile.map((id) => locksIn(directory).tryTake(id));
    expect(held.every((lock) => lock !== undefined)).toBe(true);
    for (const lock of held) lock?.release();
    expect(fs.readdirSync(path.dirname(directory))).toEqual(['runtime']);
    expect(fs.readdirSync(directory, { withFileTypes: true }).every((file) => file.isFile())).toBe(true);
    expect(fs.readdirSync(directory).filter((name) => name.endsWith('.lock'))).toHaveLength(hostile.length);
  });
});
