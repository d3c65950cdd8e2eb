// What the listener bell accepts by: a committed row of a ring that still counts.

import { beforeEach, describe, expect, it } from 'vitest';
import { listenerBell } from '../../src/hosts/claude-code/bell.ts';
import { reconcile } from '../../src/mailbox/ring.ts';
import type { Bell } from '../../src/ports/bell.ts';
import type { HandOff } from '../../src/sessions/switchboard.ts';
import { attach, post, posted, type Scene } from './desk.ts';
import { failingStore } from './failing.ts';
import { fault, openRung, type Rung, ringing } from './rung.ts';

let desk: Scene;
let bell: Bell;
let startNotifier: Rung['startNotifier'];
let rungAt: Rung['rungAt'];
let reservations: Rung['reservations'];

beforeEach(async () => {
  ({ desk, bell, startNotifier, rungAt, reservations } = await openRung());
});

const toSession = { target_kind: 'session', recipient: 's1' };

describe('the listener bell', () => {
  const item = (handOff: HandOff) => ({
    notification_id: (handOff.envelope as { notification_id: string }).notification_id,
    content: 'notice' as const,
    text: 'text',
    covered: [],
    session_id: 's1',
    attempt_id: handOff.attempt_id,
  });
  const { signal } = new AbortController();
  const tooLate = { outcome: 'unknown', code: 'stale_generation' } as const;

  it('[INB-051, MSG-034] accepts by a committed row; for an attempt that is over it writes nothing and gives no answer', async () => {
    await attach(desk, 's1');
    const first = await posted(desk, toSession);
    expect(first.native_delivery?.receipt).toEqual({
      notification_id: reservations()[0]?.notification_id,
      state: 'inbox_queued',
    });
    expect(reservations()).toMatchObject([{ state: 'inbox_queued' }]);
    expect(rungAt()).toEqual([0]);
    let stalled: HandOff | undefined;
    desk.host = (handOff) => {
      stalled = handOff;
      return { outcome: 'timeout' };
    };
    await desk.clock.advance(31_000);
    await attach(desk, 's1');
    const failed = await post(desk, toSession);
    expect(failed).toMatchObject({ details: { reason: 'host_outcome_timeout' } });
    expect(await bell.ring(item(stalled as HandOff), signal)).toEqual(tooLate);
    expect(rungAt()).toEqual([0]);
    startNotifier();
    await desk.clock.advance(30_000);
    expect(rungAt()).toEqual([0, 61]);
    const covers = desk.rows(
      'SELECT rung FROM reservation_cover v JOIN reservation n USING (notification_id) WHERE n.step = 2',
    );
    expect(covers).toEqual([{ rung: 1 }, { rung: 1 }]);
  });

  it.each(['replaced', 'expired'])('[INB-051] writes nothing for a connection that was %s', async (how) => {
    await attach(desk, 's1');
    let outcome: unknown;
    desk.host = async (handOff) => {
      if (how === 'replaced') await attach(desk, 's1');
      else await desk.clock.advance(60_000);
      outcome = await bell.ring(item(handOff), signal);
      return { outcome: 'timeout' };
    };
    await post(desk, toSession);
    expect(outcome).toEqual(tooLate);
    expect(desk.counts().listener_row).toBe(0);
  });

  it('[INB-051] writes row and state in one transaction: none of them where one fails', async () => {
    await posted(desk);
    let ring: Parameters<Bell['ring']>[0] | undefined;
    const late: Bell = {
      ...bell,
      ring: async (item) => {
        ring = item;
        return tooLate;
      },
    };
    await reconcile(desk, ringing, late, fault);
    const { database, store } = failingStore(desk);
    const failing = listenerBell({ ...desk, store });
    const written = () => ({
      rows: desk.counts().listener_row,
      state: reservations()[0]?.state,
      rung: desk.rows('SELECT rung FROM reservation_cover').map((row) => row.rung),
    });
    for (const nth of [1, 2, 3]) {
      database.left = nth;
      await expect(failing.ring(ring as typeof ring & object, signal)).rejects.toMatchObject({
        code: 'store_unwritable',
      });
      expect(database.left).toBe(0);
      expect(written()).toEqual({ rows: 0, state: 'preparing', rung: [0] });
    }
    database.left = 4;
    expect(await failing.ring(ring as typeof ring & object, signal)).toMatchObject({ outcome: 'accepted' });
    expect(database.left).toBe(1);
    expect(written()).toEqual({ rows: 1, state: 'inbox_queued', rung: [1] });
  });

  it('[INB-051] writes for the notifier only while its own reservation is current and preparing', async () => {
    await posted(desk);
    const late: { ring?: Parameters<Bell['ring']>[0] } = {};
    const slow: Bell = {
      ...bell,
      ring: async (ring) => {
        late.ring = ring;
        return tooLate;
      },
    };
    await reconcile(desk, ringing, slow, fault);
    const ring = late.ring as Parameters<Bell['ring']>[0];
    await desk.clock.advance(30_000);
    expect(await bell.ring(ring, signal)).toEqual(tooLate);
    expect(desk.counts().listener_row).toBe(0);
    await posted(desk);
    await reconcile(desk, ringing, slow, fault);
    expect(await bell.ring(late.ring as typeof ring, signal)).toMatchObject({ outcome: 'accepted' });
    const covers = 'SELECT rung FROM reservation_cover WHERE notification_id = ?';
    expect(desk.rows(covers, ring.notification_id)).toEqual([{ rung: 0 }]);
    expect(desk.rows(covers, late.ring?.notification_id)).toEqual([{ rung: 1 }, { rung: 1 }]);
    expect(await bell.ring(late.ring as typeof ring, signal)).toEqual(tooLate);
    expect(await bell.ring(ring, signal)).toEqual(tooLate);
    expect(desk.counts().listener_row).toBe(1);
    expect(bell.describe()).toMatchObject({ bell: 'listener', contents: ['notice'], attemptsMax: 1 });
  });
});
