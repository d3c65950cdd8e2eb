// Who an inbox belongs to: one spelling, compared exactly.

import fs from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ack } from '../../src/mailbox/ack.ts';
import { acknowledge } from '../../src/mailbox/acknowledge.ts';
import { fetchMessage } from '../../src/mailbox/fetch.ts';
import { intake } from '../../src/mailbox/intake.ts';
import { poll } from '../../src/mailbox/poll.ts';
import { receipts } from '../../src/mailbox/receipts.ts';
import { receive } from '../../src/mailbox/receive.ts';
import { isRefusal } from '../../src/protocol/errors.ts';
import { type Fields, readFields } from '../../src/protocol/fields.ts';
import {
  ackFields,
  acknowledgeFields,
  discoverFields,
  fetchFields,
  intakeFields,
  pollFields,
  receiptsFields,
  receiveFields,
  sendFields,
} from '../../src/protocol/requests.ts';
import { isSessionId, isWellFormed, readName } from '../../src/protocol/scope.ts';
import { locksIn } from '../../src/store/lock.ts';
import { alice, letter, ok, openScene, post, posted, read, refused, temporaryDirectory } from './desk.ts';

const decomposed = 'cafe\u0301';
const composed = 'caf\u00e9';

/** Every action, with a call that fits. */
const actions: [string, Fields, Record<string, unknown>][] = [
  ['send', sendFields, letter()],
  ['poll', pollFields, { project: 'shop', recipient: 'bob' }],
  ['fetch', fetchFields, { project: 'shop', recipient: 'bob', message_id: 'm' }],
  ['intake', intakeFields, scoped({ state: 'fetched', idempotency_key: 'k' })],
  ['ack', ackFields, scoped({ idempotency_key: 'k' })],
  ['receipts', receiptsFields, scoped({})],
  ['discover', discoverFields, { project: 'shop' }],
  ['receive', receiveFields, { project: 'shop', recipient: 'bob' }],
  ['acknowledge', acknowledgeFields, { project: 'shop', recipient: 'bob', messages: [] }],
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

describe('an inbox', () => {
  it('[MSG-009] is the same for a decomposed and a composed name, with spaces around or without, in every action', async () => {
    const desk = await openScene();
    const written = {
      project: ` ${decomposed} `,
      recipient: `\t${decomposed}\n`,
      intended_session: ` ${decomposed}`,
    };
    const sent = await posted(desk, written);
    expect(sent).toMatchObject({ project: composed, recipient: composed, intended_session: composed });
    for (const name of [composed, decomposed, ` ${composed} `]) {
      const scope = { project: name, recipient: name };
      const one = { ...scope, message_id: sent.message_id };
      const caller = { ...alice, session: composed };
      expect(ok(await poll(desk, read(pollFields, scope))).events).toHaveLength(1);
      expect(ok(fetchMessage(desk, read(fetchFields, one))).payload).toBe('hello bob');
      const bare = ok(await ack(desk, read(ackFields, { ...one, idempotency_key: name }), alice));
      expect(bare.actor).toBe(composed);
      expect(ok(receive(desk, read(receiveFields, scope), caller)).messages).toHaveLength(1);
      expect(ok(receipts(desk, read(receiptsFields, one)))).toMatchObject({
        project: composed,
        recipient: composed,
      });
    }
    const scope = { project: decomposed, recipient: decomposed };
    const messages = [{ sender: 'local', msg_id: sent.message_id }];
    const caller = { ...alice, session: composed };
    const done = ok(await acknowledge(desk, read(acknowledgeFields, { ...scope, messages }), caller));
    expect(done.acknowledged).toBe(1);
    const one = { ...scope, message_id: sent.message_id, state: 'fetched', idempotency_key: 'k' };
    expect(ok(await intake(desk, read(intakeFields, one), caller)).actor).toBe(composed);
  });

  it('[MSG-010] tells upper and lower case apart, and takes separators as they are', async () => {
    const desk = await openScene();
    await posted(desk, { recipient: 'Reviewer' });
    const sent = await posted(desk, { recipient: 'team/reviewer' });
    expect(sent.recipient).toBe('team/reviewer');
    const of = async (recipient: string) =>
      ok(await poll(desk, { project: 'shop', recipient })).events.map((event) => event.recipient);
    expect(await of('reviewer')).toEqual([]);
    expect(await of('Reviewer')).toEqual(['Reviewer']);
    expect(await of('team/reviewer')).toEqual(['team/reviewer']);
  });

  it('[MSG-011] gives a prefix no meaning', async () => {
    const desk = await openScene();
    await posted(desk, { recipient: 'claude-code:reviewer' });
    expect(ok(await poll(desk, { project: 'shop', recipient: 'reviewer' })).events).toEqual([]);
    const named = await poll(desk, { project: 'shop', recipient: 'claude-code:reviewer' });
    expect(ok(named).events).toHaveLength(1);
  });

  it('[MSG-015] keeps a sender as it is spelled, and keys nothing but idempotency by it', async () => {
    const desk = await openScene();
    const first = await posted(desk, { sender: decomposed, idempotency_key: 'same' });
    const second = await posted(desk, { sender: composed, idempotency_key: 'same', payload: 'another' });
    expect(first.sender).toBe(decomposed);
    expect(desk.rows('SELECT sender FROM message ORDER BY seq')).toEqual([
      { sender: decomposed },
      { sender: composed },
    ]);
    expect(second.message_id).not.toBe(first.message_id);
    expect(ok(await poll(desk, { project: 'shop', recipient: 'bob' })).events).toHaveLength(2);
    expect(ok(await post(desk, { sender: '\u{1f426}'.repeat(200) })).sender).toHaveLength(400);
    for (const sender of ['', '\u{1f426}'.repeat(201)])
      expect(refused(await post(desk, { sender })).code).toBe('invalid_request');
  });
});

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
      'receipts.project',
      'receipts.recipient',
      'discover.project',
      'receive.project',
      'receive.recipient',
      'acknowledge.project',
      'acknowledge.recipient',
    ]);
    expect(named('text')).toEqual([
      'send.sender',
      'send.idempotency_key',
      'send.correlation_id',
      'send.reply_to',
      'send.task_id',
      'poll.cursor',
      'fetch.message_id',
      'intake.message_id',
      'intake.idempotency_key',
      'ack.message_id',
      'ack.idempotency_key',
      'ack.host_accept_id',
      'receipts.message_id',
      'receive.notification_id',
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
        expect(refusal.message).toContain('"reviewer"');
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
    fieldsOfKind('text').filter(({ field }) => ['message_id', 'correlation_id', 'reply_to'].includes(field)),
  )('[MSG-008] of a message has at most 255 characters: $field of $action', ({ field, fields, call }) => {
    expect(isRefusal(readFields(fields, { ...call, [field]: 'x'.repeat(255) }))).toBe(false);
    expect(refused(readFields(fields, { ...call, [field]: 'x'.repeat(256) })).code).toBe('invalid_request');
  });

  it('[MSG-008] that Postbell makes is opaque ASCII', async () => {
    const desk = await openScene();
    const { message_id, delivery_id, event_id } = await posted(desk);
    for (const id of [message_id, delivery_id, event_id]) expect(id).toMatch(/^[a-z]+_[0-9a-z]{26}$/);
  });
});

describe('a session id', () => {
  it('[SES-030] has 1 to 128 characters, no control characters, and no path meaning as a lock', () => {
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
