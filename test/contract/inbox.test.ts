// The inbox of a session: everything that waits for it, and nothing that does not.

import { rmSync } from 'node:fs';
import path from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { beforeEach, describe, expect, it } from 'vitest';
import { ack } from '../../src/mailbox/ack.ts';
import { acknowledge } from '../../src/mailbox/acknowledge.ts';
import type { Caller } from '../../src/mailbox/desk.ts';
import { fetchMessage } from '../../src/mailbox/fetch.ts';
import { intake } from '../../src/mailbox/intake.ts';
import { poll } from '../../src/mailbox/poll.ts';
import { receive } from '../../src/mailbox/receive.ts';
import { watch } from '../../src/mailbox/watch.ts';
import { readFields } from '../../src/protocol/fields.ts';
import { receiveFields } from '../../src/protocol/requests.ts';
import { dispatch } from '../../src/sessions/dispatch.ts';
import { openStore } from '../../src/store/open.ts';
import {
  alice,
  atEnd,
  attach,
  difference,
  ok,
  openScene,
  post,
  posted,
  refused,
  type Scene,
  sessionCaller,
  temporaryDirectory,
} from './desk.ts';

let desk: Scene;
beforeEach(async () => {
  desk = await openScene();
});

const bob = sessionCaller('s1');
const read = (over = {}, caller: Caller = bob) => ok(receive(desk, { project: 'shop', ...over }, caller));
const ids = (over = {}, caller: Caller = bob) => read(over, caller).messages.map((one) => one.message_id);
const done = async (msg_id: string) =>
  ok(await acknowledge(desk, { project: 'shop', messages: [{ sender: 'local', msg_id }] }, bob));

describe('what a session receives', () => {
  it('[MSG-082] is all that waits under every id, its principal and its intended mail; attention first, each as it arrived', async () => {
    await attach(desk, 's1');
    await desk.store.write((tx) => tx.identity.link('s1b', 's1'));
    const p1 = await posted(desk, { status: 'update', task_id: 'a' });
    const q = await posted(desk, { status: 'needs_input' });
    const quiet = await posted(desk, { quiet: true });
    const intended = await posted(desk, { intended_session: 's1b' });
    const [old, recent] = ['s1', 's1b'].map((recipient) => ({ recipient, target_kind: 'session' }));
    await post(desk, old);
    await post(desk, recent);
    await posted(desk, { intended_session: 's2' });
    await posted(desk, { recipient: 'carol' });
    await posted(desk, { project: 'other' });
    const session = desk.rows(`SELECT message_id FROM delivery WHERE target_kind = 'session' ORDER BY seq`);
    const expected = [
      q.message_id,
      intended.message_id,
      ...session.map((row) => row.message_id),
      p1.message_id,
      quiet.message_id,
    ];
    for (const caller of [bob, sessionCaller('s1b')]) expect(ids({}, caller)).toEqual(expected);
    const before = desk.counts();
    expect(read()).toEqual(read());
    expect(difference(before, desk.counts())).toEqual({});
  });

  it('[MSG-083] is 20 unless told otherwise, with how many more wait and where else', async () => {
    for (let nth = 0; nth < 25; nth += 1) await posted(desk);
    expect(read()).toMatchObject({ remaining: 5, elsewhere: [] });
    const progress = await posted(desk, { status: 'update' });
    expect(read()).toMatchObject({ remaining: 6, progress_waiting: 1 });
    await done(progress.message_id);
    expect(read().messages).toHaveLength(20);
    expect(read({ limit: 100 })).toMatchObject({ messages: { length: 25 }, remaining: 0 });
    for (const limit of [1, 100]) expect(ok(readFields(receiveFields, { limit })).limit).toBe(limit);
    for (const limit of [0, 101])
      expect(refused(readFields(receiveFields, { limit })).code).toBe('invalid_request');
    for (const [project, count] of [
      ['b', 1],
      ['c', 3],
      ['d', 2],
      ['e', 4],
      ['f', 1],
      ['g', 1],
    ] as const)
      for (let nth = 0; nth < count; nth += 1) await posted(desk, { project });
    for (const other of [
      { project: 'only progress', status: 'update' },
      { project: 'only quiet', quiet: true },
      { project: 'of another', recipient: 'carol' },
      { project: 'meant for another', intended_session: 's2' },
    ])
      for (let nth = 0; nth < 5; nth += 1) await posted(desk, other);
    expect(read().elsewhere).toEqual([
      { project: 'e', waiting: 4 },
      { project: 'c', waiting: 3 },
      { project: 'd', waiting: 2 },
      { project: 'b', waiting: 1 },
      { project: 'f', waiting: 1 },
    ]);
    expect(read({ project: 'e' }).elsewhere[0]).toEqual({ project: 'shop', waiting: 25 });
  });

  it('[INB-070] is only what waits: nothing acknowledged, taken in or superseded, but what has a bare ack', async () => {
    const acknowledged = await posted(desk);
    const takenIn = await posted(desk);
    await posted(desk, { status: 'update', task_id: 't' });
    const newer = await posted(desk, { status: 'update', task_id: 't' });
    const acked = await posted(desk);
    const scope = (message_id: string) => ({
      project: 'shop',
      recipient: 'bob',
      message_id,
      idempotency_key: 'k',
    });
    await done(acknowledged.message_id);
    ok(await intake(desk, { ...scope(takenIn.message_id), state: 'fetched' }, bob));
    ok(await ack(desk, scope(acked.message_id), bob));
    expect(ids()).toEqual([acked.message_id, newer.message_id]);
  });

  it('[INB-066] waits still after a response that was lost, also for the next process', async () => {
    await posted(desk, { payload: 'one' });
    await posted(desk, { payload: 'two' });
    const lost = JSON.stringify(read());
    const again = await openStore({ path: desk.path, clock: desk.clock, random: desk.random });
    atEnd(() => again.close());
    const answer = ok(receive({ ...desk, store: again }, { project: 'shop' }, bob));
    expect(JSON.stringify(answer)).toBe(lost);
  });

  it('[MSG-124] is nothing where the store has no tables, and an error where it cannot be read', async () => {
    const file = path.join(temporaryDirectory(), 'empty.db');
    new BetterSqlite3(file).close();
    const empty = await openStore({ path: file, clock: desk.clock, random: desk.random });
    atEnd(() => empty.close());
    expect(ok(receive({ ...desk, store: empty }, { project: 'shop' }, bob)).messages).toEqual([]);
    await posted(desk);
    const other = new BetterSqlite3(desk.path);
    other.exec('ALTER TABLE receipt RENAME TO lost');
    other.close();
    expect(() => receive(desk, { project: 'shop' }, bob)).toThrow(
      expect.objectContaining({ code: 'store_unreadable' }),
    );
    rmSync(file, { force: true });
  });
});

describe('the events of an inbox', () => {
  it('[MSG-072] list what a host has accepted too', async () => {
    await attach(desk, 's1');
    desk.onNotify = ({ project, delivery_id }) => dispatch(desk.board, project, delivery_id);
    const sent = ok(await post(desk, { recipient: 's1', target_kind: 'session' }));
    expect(sent.native_delivery).toBeDefined();
    const ask = { project: 'shop', recipient: 's1' };
    expect(ok(await poll(desk, ask)).events).toMatchObject([{ message_id: sent.message_id }]);
    expect(ok(await watch(desk, ask, () => {}))).toMatchObject({
      type: 'events',
      events: [{ message_id: sent.message_id }],
    });
  });

  it('[MSG-173] are waited for by a watch, 30 s unless told otherwise, once it has said that it is ready', async () => {
    const said: object[] = [];
    const ask = { project: 'shop', recipient: 'bob' };
    const watching = watch(desk, ask, (line) => said.push(line)).then((answer) => said.push(ok(answer)));
    await desk.clock.advance(29_999);
    const ready = { type: 'ready', ...ask, cursor: null };
    expect(said).toEqual([ready]);
    await desk.clock.advance(1);
    await watching;
    expect(said).toEqual([ready, { type: 'timeout', events: [], next_cursor: null }]);
  });

  it('[MSG-075] are read by poll, watch and fetch without recording anything', async () => {
    const { message_id } = await posted(desk);
    const before = desk.counts();
    const ask = { project: 'shop', recipient: 'bob' };
    const { next_cursor } = ok(await poll(desk, ask));
    ok(await poll(desk, { ...ask, cursor: next_cursor as string }));
    ok(await watch(desk, ask, () => {}));
    ok(await watch(desk, { ...ask, cursor: next_cursor as string, wait_ms: 0 }, () => {}));
    ok(fetchMessage(desk, { ...ask, message_id }));
    expect(difference(before, desk.counts())).toEqual({});
    expect(ids()).toEqual([message_id]);
    expect(ok(receive(desk, ask, alice)).messages).toHaveLength(1);
  });
});
