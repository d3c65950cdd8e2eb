// Who rings when: the router's hand-offs, the session's own notifier, and the one reservation that keeps them apart.
// The times at which it rings again are in schedule.test.ts.

import { beforeEach, describe, expect, it } from 'vitest';
import { notifierLockName, runNotifier } from '../../src/mailbox/notifier.ts';
import { receipts } from '../../src/mailbox/receipts.ts';
import { reconcile } from '../../src/mailbox/ring.ts';
import type { Bell } from '../../src/ports/bell.ts';
import { dispatch } from '../../src/sessions/dispatch.ts';
import { locksIn } from '../../src/store/lock.ts';
import { settle } from './clock.ts';
import { atEnd, attach, letter, ok, post, posted, type Scene, sessionCaller } from './desk.ts';
import { failingStore } from './failing.ts';
import { fault, openRung, type Rung, ringing, startMs } from './rung.ts';

let desk: Scene;
let bell: Bell;
let startNotifier: Rung['startNotifier'];
let rungAt: Rung['rungAt'];
let reservations: Rung['reservations'];
let done: Rung['done'];

beforeEach(async () => {
  ({ desk, bell, startNotifier, rungAt, reservations, done } = await openRung());
});

const toSession = { target_kind: 'session', recipient: 's1' };
const stateOf = (message_id: string, recipient = 'bob') =>
  ok(receipts(desk, { project: 'shop', recipient, message_id })).delivery_state;

describe('one session', () => {
  it('[INB-030] has one current reservation: ten letters to its principal in a second are one hand-off', async () => {
    await attach(desk, 's1');
    startNotifier();
    for (let n = 0; n < 10; n += 1) {
      await posted(desk);
      await desk.clock.advance(100);
    }
    await desk.clock.advance(28_000);
    expect(desk.handed).toHaveLength(1);
    expect(desk.counts()).toMatchObject({ attempt: 1, host_accept: 1, reservation: 1, listener_row: 1 });
    await desk.clock.advance(2_000);
    expect(rungAt()).toEqual([0, 30]);
    expect(desk.counts()).toMatchObject({ attempt: 1, reservation: 2 });
    expect(desk.rows('SELECT count(*) AS n FROM reservation_cover GROUP BY notification_id')).toContainEqual({
      n: 10,
    });
    await posted(desk, toSession);
    expect(desk.handed).toHaveLength(2);
    expect(desk.counts().reservation).toBe(2);
  });

  it('[INB-030] has one current reservation also where two notifiers look at the same moment', async () => {
    await posted(desk);
    const store: Scene['store'] = {
      ...desk.store,
      write: async (work) => {
        await settle();
        return desk.store.write(work);
      },
    };
    await Promise.all([1, 2].map(() => reconcile({ ...desk, store }, ringing, bell, fault)));
    expect([rungAt(), desk.counts().reservation]).toEqual([[0], 1]);
  });

  it('takes an exact-session hand-off beside a notice, on the reservation that is current', async () => {
    await attach(desk, 's1');
    startNotifier();
    await posted(desk);
    await desk.clock.advance(5_000);
    const covered = await posted(desk);
    expect(desk.rows('SELECT 1 FROM attempt WHERE delivery_id = ?', covered.delivery_id)).toEqual([]);
    const before = reservations();
    const exact = await posted(desk, toSession);
    expect(exact.native_delivery?.receipt).toEqual({
      notification_id: before[0]?.notification_id,
      state: 'inbox_queued',
    });
    expect(reservations()).toEqual([
      { ...before[0], rung_at_ms: startMs + 5_000, expires_at_ms: startMs + 35_000 },
    ]);
    expect(rungAt()).toEqual([0, 5]);
    await desk.clock.advance(29_900);
    expect(rungAt()).toEqual([0, 5]);
    await desk.clock.advance(200);
    expect(rungAt()).toEqual([0, 5, 35]);
    expect(reservations()[1]).toMatchObject({ step: 1 });
  });

  it('keeps its step and ends 30 s later when an exact-session hand-off joins its reservation', async () => {
    await attach(desk, 's1', { lease_ms: 300_000 });
    startNotifier();
    await posted(desk);
    await desk.clock.advance(40_000);
    expect(reservations()).toMatchObject([{ step: 0 }, { step: 1 }]);
    await posted(desk, toSession);
    expect(reservations()).toHaveLength(2);
    expect(reservations().at(-1)).toMatchObject({ step: 1, expires_at_ms: startMs + 70_000 });
    await desk.clock.advance(30_000);
    expect(rungAt()).toEqual([0, 30, 40, 70]);
    expect(reservations().at(-1)).toMatchObject({ step: 2 });
  });

  it('that its notifier rang for a delivery accepts a late hand-off of it on that row', async () => {
    startNotifier();
    const late = letter(toSession);
    await post(desk, late);
    await desk.clock.advance(1_000);
    expect(rungAt()).toEqual([0]);
    await attach(desk, 's1');
    expect((await posted(desk, late)).native_delivery).toBeDefined();
    expect(desk.counts()).toMatchObject({ listener_row: 1, attempt: 1, host_accept: 1, reservation: 1 });
  });

  it('is rung by its notifier after 500 ms where the router was never told', async () => {
    await attach(desk, 's1');
    startNotifier();
    desk.onNotify = () => ({ delivered: false, reason: 'dispatched' });
    await posted(desk);
    await desk.clock.advance(499);
    expect(rungAt()).toEqual([]);
    await desk.clock.advance(1);
    expect(rungAt()).toEqual([0.5]);
    expect(desk.counts()).toMatchObject({ attempt: 0, reservation: 1 });
  });

  it('is rung at once where no connection is live', async () => {
    startNotifier();
    await settle();
    const { message_id } = await posted(desk);
    await settle();
    expect(rungAt()).toEqual([0]);
    expect(stateOf(message_id)).toBe('inbox_queued');
  });

  it('is not rung for progress or quiet mail, nor for what was taken in before it was due', async () => {
    startNotifier();
    await posted(desk, { status: 'update' });
    await posted(desk, { quiet: true });
    await desk.clock.advance(600_000);
    expect(desk.counts()).toMatchObject({ reservation: 0, listener_row: 0 });
    const { message_id } = await posted(desk, { status: 'needs_input' });
    await settle();
    expect(desk.rows('SELECT text FROM listener_row')[0]?.text).toContain('1 message waits and 2 progress');
    await done(message_id);
    await desk.clock.advance(600_000);
    expect(desk.counts()).toMatchObject({ reservation: 1, listener_row: 1 });
  });

  it('[INB-041, MSG-135] has later arrivals uncovered, and stored only, until a later hand-off', async () => {
    await attach(desk, 's1');
    startNotifier();
    const first = await posted(desk);
    await desk.clock.advance(10_000);
    const second = await posted(desk);
    expect([stateOf(first.message_id), stateOf(second.message_id)]).toEqual([
      'inbox_queued',
      'receiver_stored',
    ]);
    await desk.clock.advance(20_000);
    expect(stateOf(second.message_id)).toBe('inbox_queued');
    await done(second.message_id);
    expect(stateOf(second.message_id)).toBe('receiver_acknowledged');
    const third = await posted(desk);
    expect(stateOf(third.message_id)).toBe('receiver_stored');
    await done(third.message_id);
    expect(stateOf(third.message_id)).toBe('receiver_acknowledged');
    const covers = 'SELECT 1 FROM reservation_cover WHERE delivery_id = ?';
    expect(desk.rows(covers, third.delivery_id)).toEqual([]);
  });

  it('shares one reservation and one notifier under all its ids', async () => {
    await desk.store.write((tx) => tx.identity.link('s1b', 's1'));
    startNotifier();
    runNotifier(
      desk,
      locksIn(desk.directory),
      { ...ringing, caller: sessionCaller('s1b') },
      bell,
      () => {},
    ).stop();
    await posted(desk, { intended_session: 's1b' });
    await desk.clock.advance(10_000);
    await posted(desk, { intended_session: 's1' });
    await desk.clock.advance(10_000);
    expect(rungAt()).toEqual([0]);
    expect(desk.rows('SELECT DISTINCT session_root FROM reservation')).toEqual([{ session_root: 's1' }]);
  });
});

describe('a notifier', () => {
  it('[INB-047] rings nothing while another process holds the lock of its session, and rings once it is free', async () => {
    const locks = locksIn(desk.directory);
    const other = locks.tryTake(notifierLockName(desk, 's1'));
    const { stop } = runNotifier(desk, locks, ringing, bell, fault);
    atEnd(stop);
    await posted(desk, { recipient: 'bob' });
    await desk.clock.advance(60_000);
    expect([rungAt(), reservations()]).toEqual([[], []]);
    other?.release();
    await desk.clock.advance(1_000);
    expect(rungAt()).toHaveLength(1);
  });
});

describe('a reservation', () => {
  it('[INB-050] is written before anything rings: a ring that is cut off is made good when it ends', async () => {
    await attach(desk, 's1');
    const dead: Bell = {
      ...bell,
      ring: async () => {
        expect(reservations()).toMatchObject([{ state: 'preparing' }]);
        throw new Error('killed here');
      },
    };
    desk.onNotify = () => ({ delivered: false, reason: 'dispatched' });
    await posted(desk);
    await desk.clock.advance(500);
    await expect(reconcile(desk, ringing, dead, fault)).rejects.toThrow('killed here');
    startNotifier();
    await desk.clock.advance(29_999);
    expect(rungAt()).toEqual([]);
    await desk.clock.advance(1);
    expect(rungAt()).toEqual([30.5]);
    desk.onNotify = ({ project, delivery_id }) => dispatch(desk.board, project, delivery_id);
    desk.host = () => {
      expect(desk.rows(`SELECT state FROM attempt`)).toEqual([{ state: 'started' }]);
      const [row] = desk.rows(
        'SELECT count(*) AS n FROM reservation_cover v JOIN attempt a ON a.delivery_id = v.delivery_id',
      );
      expect(row).toEqual({ n: 1 });
      return { outcome: 'timeout' };
    };
    await post(desk, toSession);
    await desk.clock.advance(30_000);
    expect(rungAt()).toEqual([30.5, 60.5]);
  });

  it('[INB-050] is written with the attempt of a hand-off, in one transaction: none of them where one fails', async () => {
    await attach(desk, 's1');
    desk.onNotify = () => ({ delivered: false });
    const { delivery_id } = await posted(desk);
    const { database, store } = failingStore(desk);
    const handOver = () => dispatch({ ...desk.board, store }, 'shop', delivery_id);
    desk.host = () => ({ outcome: 'timeout' });
    for (const nth of [1, 2, 3]) {
      database.left = nth;
      await expect(handOver()).rejects.toMatchObject({ code: 'store_unwritable' });
      expect(database.left).toBe(0);
      expect(desk.counts()).toMatchObject({ attempt: 0, reservation: 0, reservation_cover: 0 });
    }
    expect(desk.handed).toEqual([]);
    database.left = Number.POSITIVE_INFINITY;
    await handOver();
    expect(desk.handed).toHaveLength(1);
    expect(desk.counts()).toMatchObject({ attempt: 1, reservation: 1, reservation_cover: 1 });
  });

  it('whose bell refused is told as failed, and rings again when it ends', async () => {
    const refusing: Bell = {
      ...bell,
      ring: async () => ({ outcome: 'rejected', code: 'adapter_error', permanent: true }),
    };
    const { message_id } = await posted(desk);
    await reconcile(desk, ringing, refusing, fault);
    expect(reservations()).toMatchObject([{ state: 'delivery_failed', step: 0 }]);
    expect(stateOf(message_id)).toBe('delivery_failed');
    startNotifier();
    await desk.clock.advance(30_000);
    expect(rungAt()).toEqual([30]);
    expect(stateOf(message_id)).toBe('inbox_queued');
  });
});
