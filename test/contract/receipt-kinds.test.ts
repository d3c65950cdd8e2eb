// The four receipts of a recipient: separate, explicit, idempotent.

import { beforeEach, describe, expect, it } from 'vitest';
import { ack } from '../../src/mailbox/ack.ts';
import { activate } from '../../src/mailbox/activate.ts';
import type { Caller, Desk } from '../../src/mailbox/desk.ts';
import { dispose } from '../../src/mailbox/dispose.ts';
import { intake } from '../../src/mailbox/intake.ts';
import { poll } from '../../src/mailbox/poll.ts';
import { receipts } from '../../src/mailbox/receipts.ts';
import { receive } from '../../src/mailbox/receive.ts';
import { watch } from '../../src/mailbox/watch.ts';
import { isRefusal, type Result } from '../../src/protocol/errors.ts';
import { type Fields, readFields } from '../../src/protocol/fields.ts';
import type { MessageReceipt } from '../../src/protocol/receipts.ts';
import { ackFields, activationFields, dispositionFields, intakeFields } from '../../src/protocol/requests.ts';
import { dispatch } from '../../src/sessions/dispatch.ts';
import {
  alice,
  attach,
  difference,
  ok,
  openScene,
  posted,
  refused,
  type Scene,
  sessionCaller,
} from './desk.ts';

let desk: Scene;
beforeEach(async () => {
  desk = await openScene();
});

const bob = sessionCaller('s1');

interface Kind {
  kind: MessageReceipt['receipt_kind'];
  fields: Fields;
  /** The field that holds the value; none where there is one value only. */
  field?: 'state' | 'value';
  values: readonly string[];
  run(desk: Desk, request: never, caller: Caller): Promise<Result<MessageReceipt>>;
}

const kinds: readonly Kind[] = [
  { kind: 'intake', fields: intakeFields, field: 'state', values: ['fetched', 'ingested'], run: intake },
  { kind: 'ack', fields: ackFields, values: ['acknowledged'], run: ack },
  {
    kind: 'disposition',
    fields: dispositionFields,
    field: 'value',
    values: ['accepted', 'rejected', 'completed', 'cancelled', 'deferred'],
    run: dispose,
  },
  {
    kind: 'activation',
    fields: activationFields,
    field: 'value',
    values: ['woken', 'manual_resume_required', 'unsupported', 'failed'],
    run: activate,
  },
];

const every = kinds.flatMap(({ values }) => values);

/** As a surface records it: fields first, then the use case. */
async function say(
  { fields, field, values, run }: Kind,
  message_id: string,
  over: Record<string, unknown> = {},
  caller: Caller = bob,
): Promise<Result<MessageReceipt>> {
  const call = { project: 'shop', recipient: 'bob', message_id, idempotency_key: 'k' };
  const request = readFields(fields, {
    ...call,
    ...(field !== undefined && { [field]: values[0] }),
    ...over,
  });
  return isRefusal(request) ? request : run(desk, request as never, caller);
}

const factsOf = (message_id: string) =>
  ok(receipts(desk, { project: 'shop', recipient: 'bob', message_id })).receipts;

describe.each(kinds)('$kind', (kind) => {
  it('[MSG-092, MSG-096] stands alone, takes its own values and no other', async () => {
    for (const value of kind.values) {
      const { message_id } = await posted(desk);
      const before = desk.counts();
      const receipt = ok(await say(kind, message_id, kind.field && { [kind.field]: value }));
      expect(receipt).toMatchObject({ receipt_kind: kind.kind, value });
      expect(factsOf(message_id).map((fact) => [fact.receipt_kind, fact.value])).toEqual([
        [kind.kind, value],
      ]);
      expect(difference(before, desk.counts())).toEqual({ receipt: 1, event: 1 });
      const waits = ok(receive(desk, { project: 'shop' }, bob)).messages.some(
        (one) => one.message_id === message_id,
      );
      expect(waits).toBe(kind.kind !== 'intake');
    }
    const { message_id } = await posted(desk);
    const { field } = kind;
    if (field === undefined) return;
    const others = [
      ...every.filter((value) => !kind.values.includes(value)),
      'read',
      'Accepted',
      '',
      null,
      1,
    ];
    for (const value of others)
      expect(refused(await say(kind, message_id, { [field]: value })).code).toBe('invalid_request');
    expect(factsOf(message_id)).toEqual([]);
  });

  it('[MSG-093] has the recipient as its actor and the calling session beside it; neither can be given', async () => {
    const { message_id } = await posted(desk);
    const other = sessionCaller('s1', 'carol');
    expect(ok(await say(kind, message_id, {}, other))).toMatchObject({ actor: 'bob', caller_session: 's1' });
    expect(ok(await say(kind, message_id, { idempotency_key: 'other' }, alice))).not.toHaveProperty(
      'caller_session',
    );
    for (const field of ['actor', 'caller_session', 'session', 'recorded_at'])
      expect(refused(await say(kind, message_id, { [field]: 'x' }))).toMatchObject({
        code: 'invalid_request',
        details: { field },
      });
  });

  it('[MSG-092, MSG-095] is the same receipt under its key, a conflict with another value, another one under another key', async () => {
    const { message_id } = await posted(desk);
    const first = ok(await say(kind, message_id));
    await desk.clock.advance(1_000);
    expect(ok(await say(kind, message_id, {}, sessionCaller('s2')))).toEqual(first);
    const { field } = kind;
    const second = kind.values[1];
    if (field !== undefined && second !== undefined)
      expect(refused(await say(kind, message_id, { [field]: second }))).toMatchObject({
        code: 'idempotency_conflict',
        details: { receipt_id: first.receipt_id },
      });
    if (kind === dispositionKind || kind === activationKind)
      expect(refused(await say(kind, message_id, { detail: 'another' })).code).toBe('idempotency_conflict');
    const other = ok(
      await say(kind, message_id, { idempotency_key: 'k2', ...(field && { [field]: second }) }),
    );
    expect(other.receipt_id).not.toBe(first.receipt_id);
    expect(refused(await say(kind, message_id, { idempotency_key: undefined })).details).toEqual({
      field: 'idempotency_key',
    });
    expect(factsOf(message_id).map((fact) => 'receipt_id' in fact && fact.receipt_id)).toEqual([
      first.receipt_id,
      other.receipt_id,
    ]);
  });
});

const [intakeKind, ackKind, dispositionKind, activationKind] = kinds as [Kind, Kind, Kind, Kind];

describe('receipts', () => {
  it('[MSG-094] spell the disposition cancelled and the status canceled, each in its place', async () => {
    const { message_id } = await posted(desk, { task_id: 't', status: 'canceled' });
    ok(await say(dispositionKind, message_id, { value: 'cancelled' }));
    expect(refused(await say(dispositionKind, message_id, { value: 'canceled' })).code).toBe(
      'invalid_request',
    );
    await expect(posted(desk, { task_id: 't', status: 'cancelled' })).rejects.toThrow('invalid_request');
  });

  it('[MSG-097] of the work and of waking take a detail of at most 1,000 characters; the others take none', async () => {
    const { message_id } = await posted(desk);
    for (const kind of [dispositionKind, activationKind]) {
      expect(ok(await say(kind, message_id, { detail: '\u{1f600}'.repeat(1_000) })).detail).toHaveLength(
        2_000,
      );
      expect(factsOf(message_id).at(-1)).toHaveProperty('detail');
      const long = { detail: 'x'.repeat(1_001), idempotency_key: 'long' };
      expect(refused(await say(kind, message_id, long)).details).toEqual({ field: 'detail' });
    }
    for (const kind of [intakeKind, ackKind])
      expect(refused(await say(kind, message_id, { detail: 'x' })).details).toEqual({ field: 'detail' });
  });

  it('[MSG-096] imply nothing: an acceptance by a host writes none of them, and each of them none of the others', async () => {
    await attach(desk, 's1');
    const { message_id, delivery_id } = await posted(desk);
    await dispatch(desk.board, 'shop', delivery_id);
    expect(factsOf(message_id).map((fact) => fact.receipt_kind)).toEqual(['attempt', 'host_accept']);
    expect(desk.rows('SELECT * FROM receipt')).toEqual([]);
    ok(await say(dispositionKind, message_id, { value: 'completed' }));
    expect(desk.rows('SELECT receipt_kind FROM receipt')).toEqual([{ receipt_kind: 'disposition' }]);
  });

  it('[MSG-099] of hosts and of presence cannot be written by a caller', async () => {
    const { message_id } = await posted(desk);
    const before = desk.counts();
    for (const kind of ['host_accept', 'host_activation', 'attempt', 'presence', 'adapter_returned'])
      for (const one of kinds)
        if (one.field !== undefined)
          expect(refused(await say(one, message_id, { [one.field]: kind })).code).toBe('invalid_request');
    for (const field of ['receipt_kind', 'source', 'host_accept', 'attempt_id', 'adapter_kind', 'presence'])
      for (const one of kinds)
        expect(refused(await say(one, message_id, { [field]: 'x' })).code).toBe('invalid_request');
    expect(difference(before, desk.counts())).toEqual({});
    await attach(desk, 's1');
    const handed = await posted(desk);
    await dispatch(desk.board, 'shop', handed.delivery_id);
    expect(factsOf(handed.message_id).map(({ receipt_kind, actor }) => [receipt_kind, actor])).toEqual([
      ['attempt', 'postbell-router'],
      ['host_accept', 'postbell-router'],
    ]);
  });

  it('[MSG-106] are read by the sender with the exact scope of the recipient', async () => {
    const { message_id } = await posted(desk);
    ok(await say(intakeKind, message_id));
    expect(factsOf(message_id)).toHaveLength(1);
    const wrong = [
      { project: 'shop', recipient: 'alice', message_id },
      { project: 'other', recipient: 'bob', message_id },
    ];
    for (const scope of wrong) expect(refused(receipts(desk, scope)).code).toBe('not_available');
  });

  it('[MSG-077] come to their sender as events, one each, without payload', async () => {
    const ask = async (over = {}) =>
      ok(await poll(desk, { project: 'shop', receipts: true, sender: 'alice', ...over }));
    const { message_id } = await posted(desk, { payload: 'secret' });
    await posted(desk, { sender: 'carol' });
    expect((await ask()).events).toEqual([]);
    const receipt = ok(await say(intakeKind, message_id));
    const { events, next_cursor, ...rest } = await ask();
    expect(rest).toEqual({ project: 'shop', sender: 'alice' });
    expect(events).toEqual([
      {
        event_id: expect.stringMatching(/^evt_/),
        event_kind: 'receipt_recorded',
        message_id,
        receipt_kind: 'intake',
        value: 'fetched',
        recorded_at: receipt.recorded_at,
      },
    ]);
    const said: object[] = [];
    const asked = { project: 'shop', receipts: true, sender: 'alice' };
    expect(ok(await watch(desk, asked, (line) => said.push(line)))).toMatchObject({ type: 'events', events });
    expect(said).toEqual([{ type: 'ready', project: 'shop', sender: 'alice', cursor: null }]);
    expect((await ask({ cursor: next_cursor })).events).toEqual([]);
    ok(await say(dispositionKind, message_id, { value: 'completed' }));
    expect((await ask({ cursor: next_cursor })).events).toMatchObject([{ receipt_kind: 'disposition' }]);
    expect((await ask({ sender: 'carol' })).events).toEqual([]);
    expect((await ask({ project: 'other' })).events).toEqual([]);
    expect(ok(await poll(desk, { project: 'shop', recipient: 'alice' })).events).toEqual([]);
    const waiting = ask({ cursor: next_cursor, wait_ms: 5_000, limit: 1 });
    expect((await waiting).events).toHaveLength(1);
    for (const over of [{ recipient: 'bob' }, { sender: undefined }, { receipts: false }])
      expect(
        refused(await poll(desk, { project: 'shop', receipts: true, sender: 'alice', ...over } as never))
          .code,
      ).toBe('invalid_request');
  });
});
