// The store between real processes: making it, holding it, dying with it.

import path from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { nextBatch } from '../../src/mailbox/listen.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { describeError, Fault } from '../../src/protocol/errors.ts';
import { locksIn } from '../../src/store/lock.ts';
import { openStore } from '../../src/store/open.ts';
import { seededRandom } from './clock.ts';
import {
  atEnd,
  difference,
  letter,
  openScene,
  post,
  posted,
  refused,
  type Scene,
  temporaryDirectory,
} from './desk.ts';
import { bundleChild, start, together } from './process.ts';

let entry = '';
beforeAll(async () => {
  entry = await bundleChild();
});

describe('several processes', () => {
  it('make one store at the same moment', async () => {
    for (let round = 0; round < 3; round += 1) {
      const file = path.join(temporaryDirectory(), 'postbell.db');
      expect(await together(entry, 4, 'open', file)).toEqual(Array(4).fill('seq 0'));
    }
  });

  it('come and go, each the last one now and then', async () => {
    const file = path.join(temporaryDirectory(), 'postbell.db');
    expect(await together(entry, 4, 'churn', file, '40')).toEqual(Array(4).fill('done'));
    const store = await openStore({ path: file, clock: systemClock, random: seededRandom(1) });
    atEnd(() => store.close());
    expect(store.read((tx) => tx.identity.chain('old'))).toHaveLength(161);
  });
});

describe('a process that holds something', () => {
  it('makes a writer wait for the lock, then fail as busy; a reader reads on', async () => {
    const desk = await openScene();
    await posted(desk);
    const holder = start(entry, 'hold', desk.path);
    expect(await holder.line()).toBe('holding');
    const random = seededRandom(2);
    const hasty = await openStore({ path: desk.path, clock: systemClock, random, lockWaitMs: 60 });
    atEnd(() => hasty.close());
    const fault = await hasty.write(() => 1).catch((error: unknown) => error);
    expect(fault).toBeInstanceOf(Fault);
    expect((fault as Fault).code).toBe('store_busy');
    expect(hasty.read((tx) => tx.feed.end().message)).toBe(1);
    let written = false;
    const waiting = desk.store.write(() => 1).then(() => (written = true));
    await desk.clock.advance(300);
    expect(written).toBe(false);
    const late = desk.store.write(() => 1).catch((error: Fault) => error.code);
    await desk.clock.advance(100);
    holder.process.kill('SIGKILL');
    await holder.ended;
    await desk.clock.advance(100);
    await waiting;
    expect(written).toBe(true);
    expect(await late).toBe(1);
  });

  it('[MSG-006] fails a writer after exactly the 5 s, which may be tried again', async () => {
    const desk = await openScene();
    const holder = start(entry, 'hold', desk.path);
    await holder.line();
    let told: object = {};
    const waiting = desk.store.write(() => 1).catch((error: Fault) => (told = describeError(error)));
    await desk.clock.advance(4_999);
    expect(told).toEqual({});
    await desk.clock.advance(26);
    await waiting;
    expect(told).toMatchObject({ code: 'store_busy', retryable: true });
  });

  it('[INB-125] and is killed inside a transaction leaves nothing of it to a listener', async () => {
    const desk = await openScene();
    const holder = start(entry, 'hold', desk.path);
    await holder.line();
    expect(nextBatch(desk, 's1')).toBeUndefined();
    holder.process.kill('SIGKILL');
    await holder.ended;
    expect(nextBatch(desk, 's1')).toBeUndefined();
    await desk.store.write((tx) =>
      tx.listener.append({ session_id: 's1', notification_id: 'n2', text: 'whole', created_at: 'now' }),
    );
    expect(nextBatch(desk, 's1')?.position).toBe(1);
  });

  it('frees its lock by any death, at once and without a clean-up', async () => {
    const directory = temporaryDirectory();
    const locks = locksIn(directory);
    for (const name of ['notifier-s1', '../x', '\u{1f426}'.repeat(128)]) {
      const holder = start(entry, 'lock', directory, name);
      expect(await holder.line()).toBe('held');
      expect(locks.tryTake(name)).toBeUndefined();
      expect(locks.tryTake(`${name}-other`)).toBeDefined();
      holder.process.kill('SIGKILL');
      await holder.ended;
      const mine = locks.tryTake(name);
      expect(mine).toBeDefined();
      expect(locks.tryTake(name)).toBeUndefined();
      mine?.release();
      const again = locks.tryTake(name);
      expect(again).toBeDefined();
      again?.release();
    }
  });
});

describe('two processes that write and acknowledge 1,000 times each', () => {
  it('[INB-024] lose nothing, and a reader beside them never sees half of it', async () => {
    const desk = await openScene();
    const both = together(entry, 2, 'busy', desk.path, '1000');
    const state = { ended: false };
    void both.finally(() => {
      state.ended = true;
    });
    const seen: number[] = [];
    while (!state.ended) {
      const { messages, deliveries, events, keys, taken, acks } = totals(desk);
      seen.push(messages as number);
      expect([deliveries, events, keys]).toEqual([messages, messages, messages]);
      expect(taken).toBe(acks);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    const names = await both;
    expect(new Set(seen).size).toBeGreaterThan(10);
    expect(totals(desk)).toEqual({
      messages: 4_000,
      deliveries: 4_000,
      events: 4_000,
      keys: 4_000,
      taken: 2_000,
      acks: 2_000,
      open: 2_000,
    });
    for (const name of names) {
      const scope = { project: 'shop', principals: [name], targets: [], intended: [], named: true };
      expect(desk.store.read((tx) => tx.waiting.counts(scope))).toEqual({ unread: 0, progress: 0 });
    }
    const shared = { project: 'shop', principals: ['bob'], targets: [], intended: [], named: true };
    expect(desk.store.read((tx) => tx.waiting.counts(shared))).toEqual({ unread: 2_000, progress: 0 });
    expect(desk.rows('PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }]);
    expect(desk.rows('SELECT count(DISTINCT payload) AS n FROM message')).toEqual([{ n: 2_000 }]);
  }, 120_000);

  /** All counted in one statement, and so in one snapshot. */
  const totals = (desk: Scene): Record<string, unknown> =>
    desk.rows(`SELECT (SELECT count(*) FROM message) AS messages, (SELECT count(*) FROM delivery) AS deliveries,
      (SELECT count(*) FROM event WHERE event_kind = 'message_available') AS events,
      (SELECT count(*) FROM idempotency) AS keys,
      (SELECT count(*) FROM receipt WHERE receipt_kind = 'intake') AS taken,
      (SELECT count(*) FROM receipt WHERE receipt_kind = 'ack') AS acks,
      (SELECT count(*) FROM delivery WHERE open = 1) AS open`)[0] as Record<string, unknown>;
});

describe('two processes with one key', () => {
  it('[MSG-020] store one message; a repeat inserts nothing, other content is a conflict', async () => {
    const desk = await openScene();
    const request = letter({ idempotency_key: 'once' });
    const before = desk.counts();
    const ids = await together(entry, 2, 'send', desk.path, JSON.stringify(request));
    expect(new Set(ids).size).toBe(1);
    const one = { message: 1, delivery: 1, event: 1, idempotency: 1 };
    expect(difference(before, desk.counts())).toEqual(one);
    const again = await posted(desk, request);
    const [row] = desk.rows(
      'SELECT m.message_id, d.delivery_id, e.event_id FROM message m, delivery d, event e',
    );
    expect(again).toMatchObject(row as object);
    expect(again.message_id).toBe(ids[0]);
    expect(refused(await post(desk, { ...request, payload: 'other' })).code).toBe('idempotency_conflict');
    expect(difference(before, desk.counts())).toEqual(one);
    for (const scope of [{ project: 'other' }, { sender: 'carol' }, { idempotency_key: 'twice' }])
      expect((await posted(desk, { ...request, ...scope })).message_id).not.toBe(ids[0]);
  });

  it('[INB-078] that acknowledge one receipt count it once', async () => {
    const desk = await openScene();
    const { message_id } = await posted(desk);
    const receipt = JSON.stringify([{ sender: 'local', msg_id: message_id }]);
    const counts = await together(entry, 2, 'acknowledge', desk.path, receipt);
    expect(counts.map(Number).reduce((a, b) => a + b)).toBe(1);
    expect(desk.rows('SELECT receipt_kind FROM receipt ORDER BY seq')).toEqual([
      { receipt_kind: 'intake' },
      { receipt_kind: 'ack' },
    ]);
  });
});
