// Reading one's mail, and saying exactly which of it one has taken in.

import { beforeEach, describe, expect, it } from 'vitest';
import { ack } from '../../src/mailbox/ack.ts';
import { acknowledge } from '../../src/mailbox/acknowledge.ts';
import { intake } from '../../src/mailbox/intake.ts';
import { receipts } from '../../src/mailbox/receipts.ts';
import { receive } from '../../src/mailbox/receive.ts';
import { openReservation } from '../../src/mailbox/reserve.ts';
import { readFields } from '../../src/protocol/fields.ts';
import { acknowledgeFields, receiveFields } from '../../src/protocol/requests.ts';
import {
  alice,
  attach,
  difference,
  ok,
  openScene,
  post,
  posted,
  refused,
  type Scene,
  sessionCaller,
} from './desk.ts';

let desk: Scene;
beforeEach(async () => {
  desk = await openScene();
  await attach(desk, 's1');
});

const bob = sessionCaller('s1');
const read = (over: Record<string, unknown> = {}, caller = bob) =>
  receive(desk, ok(readFields(receiveFields, { project: 'shop', ...over })), caller);
const done = (messages: unknown[], caller = bob, over: Record<string, unknown> = {}) =>
  acknowledge(desk, ok(readFields(acknowledgeFields, { project: 'shop', messages, ...over })), caller);
const local = (msg_id: string) => ({ sender: 'local', msg_id });

async function write(count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let n = 0; n < count; n += 1) ids.push((await posted(desk, { payload: `letter ${n}` })).message_id);
  return ids;
}

describe('receiving', () => {
  it('[INB-063] returns all that waits for the session, and consumes nothing', async () => {
    await desk.store.write((tx) => tx.identity.link('s1b', 's1'));
    await posted(desk, { payload: 'to bob' });
    await posted(desk, { payload: 'meant for s1', intended_session: 's1' });
    await post(desk, { payload: 'to s1', target_kind: 'session', recipient: 's1' });
    await posted(desk, { payload: 'to carol', recipient: 'carol' });
    const before = desk.counts();
    const first = ok(read());
    expect(first.messages.map(({ payload }) => payload)).toEqual(['to bob', 'meant for s1', 'to s1']);
    expect(first.messages.map(({ untrusted }) => untrusted)).toEqual([true, true, true]);
    expect(ok(read())).toEqual(first);
    expect(ok(read({}, sessionCaller('s1b')))).toEqual(first);
    expect(difference(before, desk.counts())).toEqual({});
    const nobody = { ...alice };
    expect(refused(receive(desk, { project: 'shop' }, nobody)).code).toBe('invalid_request');
    expect(refused(receive(desk, {}, bob)).code).toBe('project_unavailable');
    const scoped = ok(receive(desk, { project: 'shop', recipient: 'bob' }, nobody)).messages;
    expect(scoped.map(({ payload }) => payload)).toEqual(['to bob', 'to s1']);
  });

  it('[INB-064] returns 20 unless told otherwise, and 100 at the most', async () => {
    await write(25);
    expect(ok(read()).messages).toHaveLength(20);
    for (const limit of [1, 25, 100]) expect(ok(read({ limit })).messages).toHaveLength(Math.min(limit, 25));
    for (const limit of [0, 101, -1, 1.5, '5', true])
      expect(refused(readFields(receiveFields, { limit })).code).toBe('invalid_request');
  });

  it('[INB-065] puts what needs a turn first, then progress and quiet mail, each as it arrived', async () => {
    await posted(desk, { payload: 'p1', status: 'update', task_id: 't1' });
    await posted(desk, { payload: 'q1', status: 'needs_input' });
    await posted(desk, { payload: 'c1', quiet: true });
    await posted(desk, { payload: 'p2', status: 'update', task_id: 't2' });
    await posted(desk, { payload: 'r1', status: 'result', task_id: 't3' });
    expect(ok(read()).messages.map(({ payload }) => payload)).toEqual(['q1', 'r1', 'p1', 'c1', 'p2']);
    expect(ok(read({ limit: 1 })).messages.map(({ payload }) => payload)).toEqual(['q1']);
  });

  it('[INB-071] says how many remain, and how many are progress', async () => {
    await write(25);
    await posted(desk, { status: 'update' });
    await posted(desk, { quiet: true });
    expect(ok(read())).toMatchObject({ remaining: 7, progress_waiting: 2 });
    expect(ok(read({ limit: 100 }))).toMatchObject({ remaining: 0, progress_waiting: 2 });
  });

  it('[INB-072] is no error where nothing waits', () => {
    expect(ok(read())).toEqual({ messages: [], remaining: 0, progress_waiting: 0, elsewhere: [] });
  });

  it('[INB-067] takes any id of a notice, or none, for the same answer', async () => {
    const covered = (await posted(desk)).delivery_id;
    await posted(desk);
    const plain = ok(read());
    expect(plain.messages).toHaveLength(2);
    for (const notification_id of ['ab12cd', 'unknown', 'x'.repeat(255), null])
      expect(ok(read({ notification_id }))).toEqual(plain);
    const open = () => desk.store.write((tx) => openReservation(tx, desk, 's1', [covered]));
    const [stale, current] = [await open(), await open()];
    expect(desk.rows('SELECT notification_id FROM reservation ORDER BY seq DESC LIMIT 1')).toEqual([
      { notification_id: current },
    ]);
    for (const notification_id of [stale, current]) expect(ok(read({ notification_id }))).toEqual(plain);
    expect(desk.counts()).toMatchObject({ reservation: 2, receipt: 0 });
  });

  it('excludes what was acknowledged or taken in, but not what has a bare ack', async () => {
    const [a, b, c] = (await write(3)) as [string, string, string];
    const scope = { project: 'shop', recipient: 'bob', idempotency_key: 'k' };
    ok(await done([local(a)]));
    ok(await intake(desk, { ...scope, message_id: b, state: 'fetched' }, bob));
    ok(await ack(desk, { ...scope, message_id: c }, bob));
    expect(ok(read()).messages.map(({ message_id }) => message_id)).toEqual([c]);
  });
});

describe('acknowledging', () => {
  it('[INB-074, MSG-087] records intake and ack for exactly the receipts given', async () => {
    const [a, b] = (await write(2)) as [string, string];
    const [first] = ok(read()).messages;
    expect(first?.receipt).toEqual(local(a));
    expect(ok(await done([first?.receipt]))).toEqual({ acknowledged: 1, unchanged: 0, refused: [] });
    const facts = ok(receipts(desk, { project: 'shop', recipient: 'bob', message_id: a }));
    expect(facts.receipts.map(({ receipt_kind, value }) => [receipt_kind, value])).toEqual([
      ['intake', 'ingested'],
      ['ack', 'acknowledged'],
    ]);
    expect(facts.delivery_state).toBe('receiver_acknowledged');
    expect(ok(receipts(desk, { project: 'shop', recipient: 'bob', message_id: b })).receipts).toEqual([]);
    for (const count of [0, 101])
      expect(refused(await done(Array(count).fill(local(b)))).code).toBe('invalid_request');
    expect(desk.counts().receipt).toBe(2);
    expect(ok(await done([...Array(99).fill(local('x')), local(b)])).acknowledged).toBe(1);
  });

  it.each([
    [null],
    ['x'],
    [7],
    [{}],
    [{ sender: 'local' }],
    [{ sender: 'local', msg_id: 5 }],
    [{ ...local('x'), more: 1 }],
  ])('takes receipts verbatim only: %j', async (odd) => {
    const [a] = (await write(1)) as [string];
    expect(refused(await done([local(a), odd])).details).toEqual({ field: 'messages' });
    expect(desk.counts().receipt).toBe(0);
  });

  it('[INB-068] takes each receipt as it was received', async () => {
    await write(3);
    const given = ok(read()).messages.map(({ receipt }) => receipt);
    expect(ok(await done(JSON.parse(JSON.stringify(given)) as unknown[])).acknowledged).toBe(3);
    expect(ok(read()).messages).toEqual([]);
  });

  it('[INB-076] may be repeated, and may name what it does not know', async () => {
    const [a] = (await write(1)) as [string];
    expect(ok(await done([local(a), local(a)]))).toMatchObject({ acknowledged: 1, unchanged: 1 });
    const before = desk.counts();
    expect(ok(await done([local(a), local('unknown'), local('')]))).toMatchObject({
      acknowledged: 0,
      unchanged: 3,
    });
    expect(difference(before, desk.counts())).toEqual({});
  });

  it('names a message by its sender and id: a petname or a key of another store matches nothing', async () => {
    const [a] = (await write(1)) as [string];
    for (const sender of ['alice', 'Local', 'LOCAL', '', 'k'.repeat(64)])
      expect(ok(await done([{ sender, msg_id: a }]))).toMatchObject({ acknowledged: 0, unchanged: 1 });
    expect(ok(read()).messages).toHaveLength(1);
  });

  it('[INB-077] never consumes what arrived meanwhile', async () => {
    const first = await posted(desk);
    const given = ok(read()).messages.map(({ receipt }) => receipt);
    const later = await posted(desk);
    const both = [first.delivery_id, later.delivery_id];
    await desk.store.write((tx) => openReservation(tx, desk, 's1', both));
    ok(await done(given));
    expect(ok(read()).messages.map(({ message_id }) => message_id)).toEqual([later.message_id]);
    expect(desk.rows('SELECT delivery_id FROM receipt GROUP BY delivery_id')).toEqual([
      { delivery_id: first.delivery_id },
    ]);
  });

  it('[INB-079] leaves the mail of others alone, and names what is meant for another session', async () => {
    await attach(desk, 's2');
    const meant = (await posted(desk, { intended_session: 's1' })).message_id;
    const carols = (await posted(desk, { recipient: 'carol' })).message_id;
    const elsewhere = (await posted(desk, { project: 'bank' })).message_id;
    const keys = [meant, carols, elsewhere].map(local);
    for (const caller of [sessionCaller('s2'), { ...alice, session: 'unheard of', principal: 'bob' }]) {
      const answer = ok(await done(keys, caller));
      expect(answer).toEqual({
        acknowledged: 0,
        unchanged: 2,
        refused: [{ ...local(meant), code: 'intended_for_other_session' }],
      });
    }
    expect(ok(await done(keys, alice as typeof bob, { recipient: 'bob' })).refused).toHaveLength(1);
    expect(desk.counts().receipt).toBe(0);
    expect(ok(await done(keys, alice as typeof bob, { recipient: 'carol' })).acknowledged).toBe(1);
    expect(ok(await done(keys, bob, { project: 'bank' })).acknowledged).toBe(1);
    expect(ok(await done(keys)).acknowledged).toBe(1);
  });

  it('completes what was taken in or acknowledged by itself, and touches once', async () => {
    const [a, b] = (await write(2)) as [string, string];
    const scope = { project: 'shop', recipient: 'bob', idempotency_key: 'acknowledge_messages' };
    ok(await intake(desk, { ...scope, message_id: a, state: 'fetched' }, bob));
    ok(await ack(desk, { ...scope, message_id: b }, bob));
    const touches = desk.wake.touches;
    expect(ok(await done([local(a), local(b)])).acknowledged).toBe(2);
    expect(desk.wake.touches).toBe(touches + 1);
    expect(desk.rows('SELECT count(*) AS n FROM receipt')).toEqual([{ n: 4 }]);
  });
});
