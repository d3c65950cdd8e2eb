// A message that waits only for so long.

import { beforeEach, describe, expect, it } from 'vitest';
import { listenerBell } from '../../src/hosts/claude-code/bell.ts';
import { fetchMessage } from '../../src/mailbox/fetch.ts';
import { intake } from '../../src/mailbox/intake.ts';
import { receipts } from '../../src/mailbox/receipts.ts';
import { receive } from '../../src/mailbox/receive.ts';
import { reconcile } from '../../src/mailbox/ring.ts';
import { send } from '../../src/mailbox/send.ts';
import { sendFields } from '../../src/protocol/requests.ts';
import { dispatch } from '../../src/sessions/dispatch.ts';
import {
  alice,
  attach,
  difference,
  letter,
  ok,
  openScene,
  post,
  posted,
  read,
  refused,
  type Scene,
  sessionCaller,
} from './desk.ts';
import { fault } from './rung.ts';

let desk: Scene;
beforeEach(async () => {
  desk = await openScene();
});

const bob = sessionCaller('s1');
const noon = '2026-03-01T12:00:00.000Z';
const inAMinute = '2026-03-01T12:01:00.000Z';
const waiting = () => ok(receive(desk, { project: 'shop' }, bob)).messages;
const factsOf = (message_id: string) => ok(receipts(desk, { project: 'shop', recipient: 'bob', message_id }));

describe('a message that expires', () => {
  it('[MSG-141] has done so for good: a newer update of its task changes nothing of what was listed', async () => {
    const update = { task_id: 't', status: 'update' };
    const { message_id } = await posted(desk, { ...update, expires_at: inAMinute });
    const other = await posted(desk, { ...update, task_id: 'other', expires_at: inAMinute });
    await posted(desk, { ...update, task_id: 'other' });
    await desk.clock.advance(60_000);
    const { receipts } = factsOf(message_id);
    expect(receipts).toMatchObject([{ receipt_kind: 'expired' }]);
    await posted(desk, update);
    expect(factsOf(message_id).receipts).toEqual(receipts);
    expect(factsOf(other.message_id).receipts).toEqual([]);
  });

  it('[MSG-141] is from then on neither dispatched, rung nor waiting; the fact is listed, and nothing is deleted', async () => {
    await attach(desk, 's1', { lease_ms: 300_000 });
    const { message_id, delivery_id } = await posted(desk, { expires_at: inAMinute });
    const plain = await posted(desk);
    const before = desk.counts();
    await desk.clock.advance(59_999);
    expect(waiting()).toHaveLength(2);
    expect(factsOf(message_id).receipts).toEqual([]);
    await desk.clock.advance(1);
    expect(waiting().map((one) => one.message_id)).toEqual([plain.message_id]);
    expect(factsOf(message_id)).toMatchObject({
      delivery_state: 'receiver_stored',
      receipts: [{ receipt_kind: 'expired', source: 'message', recorded_at: inAMinute }],
    });
    const late = await dispatch(desk.board, 'shop', delivery_id);
    expect([late, desk.handed]).toEqual([{ delivered: false, reason: 'expired' }, []]);
    expect((await dispatch(desk.board, 'shop', plain.delivery_id)).delivered).toBe(true);
    await intake(
      desk,
      {
        project: 'shop',
        recipient: 'bob',
        message_id: plain.message_id,
        idempotency_key: 'k',
        state: 'ingested',
      },
      bob,
    );
    const ringing = { caller: bob, project: 'shop' };
    expect(await reconcile(desk, ringing, listenerBell(desk), fault)).toBeUndefined();
    expect(desk.rows('SELECT * FROM listener_row')).toEqual([]);
    const scope = { project: 'shop', recipient: 'bob', message_id };
    expect(ok(fetchMessage(desk, scope))).toMatchObject({ payload: 'hello bob', expires_at: inAMinute });
    for (const [table, grown] of Object.entries(difference(before, desk.counts())))
      expect(`${table} ${grown > 0}`).toBe(`${table} true`);
  });

  it('[MSG-141] may expire any time ahead, is told as UTC, and without a time never expires', async () => {
    for (const expires_at of [
      noon,
      '2026-03-01T11:59:59.999Z',
      '2026-03-01T12:30:00+01:00',
      '2026-03-01',
      '2026-04-31T00:00:00Z',
      '2027-02-29T00:00:00Z',
      '2026-13-01T00:00:00Z',
      'soon',
      '',
    ])
      expect(refused(await post(desk, { expires_at })).code).toBe('invalid_request');
    expect(desk.rows('SELECT * FROM message')).toEqual([]);
    const soon = await posted(desk, { expires_at: '2026-03-01T13:00:00.001+01:00' });
    expect(soon.expires_at).toBe('2026-03-01T12:00:00.001Z');
    const { expires_at } = await posted(desk, { expires_at: '2028-02-29T23:59:59Z' });
    expect(expires_at).toBe('2028-02-29T23:59:59.000Z');
    await posted(desk);
    await desk.clock.advance(86_400_000 * 365);
    expect(waiting()).toHaveLength(2);
  });

  it('[MSG-141] lists no expiry of what something newer had made obsolete before', async () => {
    const task = { task_id: 't', status: 'update', expires_at: inAMinute };
    const older = await posted(desk, task);
    await posted(desk, { task_id: 't', status: 'result' });
    await desk.clock.advance(120_000);
    expect(factsOf(older.message_id).receipts).toEqual([]);
  });

  it('[MSG-141] ends no fact that was there, and can still be taken in; its time is content', async () => {
    const request = read(sendFields, letter({ expires_at: inAMinute }));
    const { message_id } = ok(await send(desk, request, alice));
    const other = ok(await post(desk, { expires_at: inAMinute }));
    const take = (id: string) =>
      intake(
        desk,
        { project: 'shop', recipient: 'bob', message_id: id, idempotency_key: 'k', state: 'fetched' },
        bob,
      );
    ok(await take(message_id));
    await desk.clock.advance(120_000);
    expect(factsOf(message_id).receipts.map((one) => one.receipt_kind)).toEqual(['intake']);
    expect(ok(await send(desk, request, alice)).message_id).toBe(message_id);
    ok(await take(other.message_id));
    expect(factsOf(other.message_id).receipts.map((one) => one.receipt_kind)).toEqual(['expired', 'intake']);
    const changed = { ...request, expires_at: '2026-03-02T00:00:00.000Z' };
    expect(refused(await send(desk, changed, alice)).code).toBe('idempotency_conflict');
  });
});
