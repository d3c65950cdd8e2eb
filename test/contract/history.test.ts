// A conversation: both directions with one peer.

import { beforeEach, describe, expect, it } from 'vitest';
import { listenerBell } from '../../src/hosts/claude-code/bell.ts';
import { acknowledge } from '../../src/mailbox/acknowledge.ts';
import type { Caller } from '../../src/mailbox/desk.ts';
import { history } from '../../src/mailbox/history.ts';
import { receive } from '../../src/mailbox/receive.ts';
import { reconcile } from '../../src/mailbox/ring.ts';
import { type StatusAnswer, status } from '../../src/mailbox/status.ts';
import { readFields } from '../../src/protocol/fields.ts';
import { historyFields } from '../../src/protocol/requests.ts';
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
import { fault } from './rung.ts';

let desk: Scene;
beforeEach(async () => {
  desk = await openScene();
  await attach(desk, 'b1');
});

const bob = sessionCaller('b1');
const read = async (over = {}, caller: Caller = bob) =>
  ok(await history(desk, { project: 'shop', peer: 'alice', ...over }, caller));
const waiting = () => ok(receive(desk, { project: 'shop' }, bob)).messages.map(({ payload }) => payload);

/** One second later, one way or the other. */
async function say(payload: string, from: 'alice' | 'bob', over = {}) {
  await desk.clock.advance(1_000);
  return from === 'alice'
    ? posted(desk, { payload, ...over })
    : ok(await post(desk, { payload, sender: 'bob', recipient: 'alice', ...over }, bob));
}

describe('a conversation', () => {
  it('[INB-086] holds what was meant for the session under a name that it no longer has', async () => {
    await posted(desk, { recipient: 'robert', intended_session: 'b1', payload: 'meant for b1' });
    await posted(desk, { recipient: 'robert', payload: 'for robert' });
    await posted(desk, { recipient: 'robert', intended_session: 'b2', payload: 'meant for b2' });
    expect(waiting()).toEqual(['meant for b1']);
    const payloads = async (over = {}) => (await read(over)).messages.map(({ payload }) => payload);
    expect(await payloads()).toEqual(['meant for b1']);
    expect(await read({ consume: true })).toMatchObject({ consumed: 1 });
    expect(waiting()).toEqual([]);
    expect(await payloads()).toEqual(['meant for b1']);
  });

  it('merges both directions in time order, newest last, the last 20 or as many as asked for', async () => {
    await say('a1', 'alice');
    await say('b1', 'bob');
    await say('a2', 'alice');
    await posted(desk, { payload: 'of another', sender: 'carol' });
    await posted(desk, { payload: 'to another', sender: 'bob', recipient: 'carol' });
    const { messages, peer, consumed } = await read();
    expect([peer, consumed]).toEqual(['alice', 0]);
    expect(messages.map((one) => [one.payload, one.direction])).toEqual([
      ['a1', 'in'],
      ['b1', 'out'],
      ['a2', 'in'],
    ]);
    expect(messages[0]).toMatchObject({
      receipt: { sender: 'local', msg_id: messages[0]?.message_id },
      untrusted: true,
    });
    expect(messages[1]).not.toHaveProperty('receipt');
    expect((await read({ limit: 1 })).messages.map(({ payload }) => payload)).toEqual(['a2']);
    for (let nth = 0; nth < 25; nth += 1) await say(`n${nth}`, 'alice');
    expect((await read()).messages).toHaveLength(20);
    expect((await read({ limit: 100 })).messages).toHaveLength(28);
    for (const limit of [0, 101, 1.5, '5'])
      expect(refused(readFields(historyFields, { peer: 'a', limit })).details).toEqual({ field: 'limit' });
  });

  it('[MSG-009] is with the peer in whatever form its name is given', async () => {
    const composed = 'r\u00e9viewer';
    const decomposed = composed.normalize('NFD');
    await posted(desk, { sender: decomposed, payload: 'from it' });
    ok(await post(desk, { sender: 'bob', recipient: decomposed, payload: 'to it' }, bob));
    expect((await read({ peer: decomposed })).messages.map(({ payload }) => payload)).toEqual([
      'from it',
      'to it',
    ]);
    expect((await read({ peer: ` ${composed}` })).messages.map(({ payload }) => payload)).toEqual(['to it']);
  });

  it('shows what the session sent under any label, and what its principal sent from anywhere', async () => {
    ok(await post(desk, { payload: 'labelled', sender: 'someone', recipient: 'alice' }, bob));
    ok(await post(desk, { payload: 'from a shell', sender: 'bob', recipient: 'alice' }, alice));
    ok(
      await post(
        desk,
        { payload: 'of a stranger', sender: 'stranger', recipient: 'alice' },
        sessionCaller('x', 'x'),
      ),
    );
    expect((await read()).messages.map(({ payload }) => payload as string).sort()).toEqual([
      'from a shell',
      'labelled',
    ]);
  });

  it('[INB-081] is read-only', async () => {
    const { message_id } = await say('a1', 'alice');
    await say('b1', 'bob');
    await reconcile(desk, { caller: bob, project: 'shop' }, listenerBell(desk), fault);
    const everything = () => [
      ...Object.keys(desk.counts()).map((table) => [table, desk.rows(`SELECT * FROM "${table}"`)]),
      ['touches', desk.wake.touches],
    ];
    expect(desk.counts()).toMatchObject({ reservation: 1, listener_row: 1, connection: 1, receipt: 0 });
    const before = everything();
    await read();
    await read({ consume: false });
    expect(everything()).toEqual(before);
    expect(desk.store.read((tx) => tx.messages.byId(message_id)?.waiting)).toBe(true);
  });

  it('[MSG-090, INB-084] consumes exactly the inbound ones it returns, before it answers: a lost answer is read again', async () => {
    await say('a1', 'alice');
    await say('b1', 'bob');
    await say('a2', 'alice');
    const sawWhileAnswering: unknown[] = [];
    const answering = history(desk, { project: 'shop', peer: 'alice', consume: true }, bob).then((answer) => {
      sawWhileAnswering.push(waiting());
      return answer;
    });
    expect(ok(await answering).consumed).toBe(2);
    expect(sawWhileAnswering).toEqual([[]]);
    const again = await read();
    expect(again.messages.map(({ payload, delivery_state }) => [payload, delivery_state])).toEqual([
      ['a1', 'receiver_acknowledged'],
      ['b1', 'receiver_stored'],
      ['a2', 'receiver_acknowledged'],
    ]);
    expect(desk.rows('SELECT DISTINCT receipt_kind, caller_session FROM receipt')).toEqual([
      { receipt_kind: 'intake', caller_session: 'b1' },
      { receipt_kind: 'ack', caller_session: 'b1' },
    ]);
    expect((await read({ consume: true })).consumed).toBe(0);
  });

  it('[MSG-090, INB-085] leaves waiting what the limit cut off, and what is meant for a sibling', async () => {
    await say('older', 'alice');
    await say('newer', 'alice');
    await say('for another session', 'alice', { intended_session: 'b2' });
    const { messages, consumed } = await read({ limit: 1, consume: true });
    expect([messages.map(({ payload }) => payload), consumed]).toEqual([['newer'], 1]);
    expect(waiting()).toEqual(['older']);
    expect(desk.rows(`SELECT count(*) AS n FROM delivery WHERE open = 1`)).toEqual([{ n: 2 }]);
  });

  it('[INB-086] keeps acknowledged and superseded ones, the latter marked', async () => {
    const first = await say('u1', 'alice', { task_id: 't', status: 'update' });
    const second = await say('u2', 'alice', { task_id: 't', status: 'update' });
    const messages = [{ sender: 'local', msg_id: second.message_id }];
    ok(await acknowledge(desk, { project: 'shop', messages }, bob));
    expect((await read()).messages).toMatchObject([
      { message_id: first.message_id, superseded_by: second.message_id },
      { message_id: second.message_id, delivery_state: 'receiver_acknowledged' },
    ]);
  });
});

describe('the status of a message', () => {
  it('is its body where it came in, its receipts where it went out, and nothing where it is neither', async () => {
    const inbound = await say('question', 'alice');
    const outbound = await say('answer', 'bob');
    expect(ok(status(desk, { msg_id: inbound.message_id }, bob))).toMatchObject({
      direction: 'in',
      payload: 'question',
      delivery_state: 'receiver_stored',
      pruned: false,
      receipts: [],
      untrusted: true,
    });
    const out = ok(status(desk, { msg_id: outbound.message_id }, bob)) as StatusAnswer;
    expect(out.direction).toBe('out');
    expect(out).not.toHaveProperty('payload');
    expect(ok(status(desk, { msg_id: inbound.message_id }, alice))).toMatchObject({ direction: 'out' });
    const before = desk.counts();
    for (const [msg_id, caller, sender] of [
      [inbound.message_id, sessionCaller('c1', 'carol')],
      ['unknown', bob],
      ['unknown', alice],
      [inbound.message_id, bob, 'a key'],
    ] as [string, Caller, string?][])
      expect(refused(status(desk, { msg_id, ...(sender && { sender }) }, caller)).code).toBe('not_found');
    expect(difference(before, desk.counts())).toEqual({});
  });
});
