// When a session is rung again: the real notifier of s1 over the real store, on a clock that the test moves.

import BetterSqlite3 from 'better-sqlite3';
import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { intake } from '../../src/mailbox/intake.ts';
import { receive } from '../../src/mailbox/receive.ts';
import { ok, posted, type Scene } from './desk.ts';
import { openRung, type Rung, ringing } from './rung.ts';

const day = 86_400_000;

let desk: Scene;
let rung: Rung;
beforeEach(async () => {
  rung = await openRung();
  desk = rung.desk;
});

const take = async (message_id: string) => {
  const scope = { project: 'shop', recipient: 'bob', message_id };
  ok(await intake(desk, { ...scope, state: 'fetched', idempotency_key: 'k' }, ringing.caller));
};

/** Whatever ends the waiting of a message. */
async function end(how: string, message_id: string): Promise<void> {
  if (how === 'taken in') return take(message_id);
  if (how === 'acknowledged') return rung.done(message_id);
  const other = new BetterSqlite3(desk.path);
  const set =
    how === 'superseded' ? `superseded_by = 'msg_x', open = 0` : `expires_at = '2026-01-01T00:00:00.000Z'`;
  other.prepare(`UPDATE delivery SET ${set} WHERE message_id = ?`).run(message_id);
  other.close();
}

describe('the schedule of one session', () => {
  it('[INB-031] rings at 0, 30, 90, 210, 450, 750 and 1050 s while nothing is done, and at once after a release', async () => {
    rung.startNotifier();
    const { message_id } = await posted(desk);
    await desk.clock.advance(1_100_000);
    expect(rung.rungAt()).toEqual([0, 30, 90, 210, 450, 750, 1_050]);
    expect(rung.reservations().map(({ step }) => step)).toEqual([0, 1, 2, 3, 4, 4, 4]);
    expect(new Set(rung.reservations().map(({ notification_id }) => notification_id)).size).toBe(7);
    await rung.done(message_id);
    await desk.clock.advance(600_000);
    expect(rung.rungAt()).toHaveLength(7);
    await posted(desk);
    await desk.clock.advance(29_999);
    expect(rung.rungAt().slice(7)).toEqual([1_700]);
    await desk.clock.advance(1);
    expect(rung.rungAt().slice(7)).toEqual([1_700, 1_730]);
  });

  it.each([
    [100, 190],
    [10, 120],
  ])(
    '[INB-033] is brought forward by mail that no reservation covers, %d s in, and keeps its step',
    async (seconds, at) => {
      rung.startNotifier();
      await posted(desk);
      await desk.clock.advance(90_000 + seconds * 1_000);
      expect(rung.rungAt()).toEqual([0, 30, 90]);
      const fresh = await posted(desk);
      await desk.clock.advance(31_000);
      expect(rung.rungAt()).toEqual([0, 30, 90, at]);
      expect(rung.reservations().at(-1)).toMatchObject({ step: 3 });
      const newest = rung.reservations().at(-1)?.notification_id;
      const covers = desk.rows(
        'SELECT 1 FROM reservation_cover WHERE notification_id = ? AND delivery_id = ?',
        newest,
        fresh.delivery_id,
      );
      expect(covers).toHaveLength(1);
      await desk.clock.advance(240_000);
      expect(rung.rungAt()).toEqual([0, 30, 90, at, at + 240]);
    },
  );

  it('[INB-034] is created, kept and renewed by attention-worthy mail alone', async () => {
    rung.startNotifier();
    await posted(desk, { status: 'update' });
    await posted(desk, { quiet: true });
    await desk.clock.advance(100_000);
    expect(rung.reservations()).toEqual([]);
    const question = await posted(desk, { status: 'needs_input' });
    await desk.clock.advance(1_000);
    expect(desk.rows('SELECT delivery_id FROM reservation_cover')).toEqual([
      { delivery_id: question.delivery_id },
    ]);
    await rung.done(question.message_id);
    await desk.clock.advance(600_000);
    expect(rung.rungAt()).toEqual([100]);
    await posted(desk);
    await desk.clock.advance(30_000);
    expect(rung.rungAt()).toEqual([100, 701, 731]);
  });

  it('[INB-034] of progress that came meanwhile is not kept by it: the next question rings at once', async () => {
    rung.startNotifier();
    await posted(desk, { status: 'update' });
    const question = await posted(desk, { status: 'needs_input' });
    await desk.clock.advance(1_000);
    await rung.done(question.message_id);
    await desk.clock.advance(1_000);
    await posted(desk);
    await desk.clock.advance(1_000);
    expect(rung.rungAt()).toEqual([0, 2]);
    await desk.clock.advance(30_000);
    expect(rung.rungAt()).toEqual([0, 2, 32]);
  });

  it.each(['taken in', 'acknowledged', 'superseded', 'expired'])(
    '[INB-039] begins anew, at once and with 30 s, when all that was covered is %s',
    async (how) => {
      rung.startNotifier();
      const first = await posted(desk);
      await desk.clock.advance(100_000);
      expect(rung.rungAt()).toEqual([0, 30, 90]);
      await end(how, first.message_id);
      await desk.clock.advance(7_000);
      await posted(desk);
      await desk.clock.advance(32_000);
      expect(rung.rungAt()).toEqual([0, 30, 90, 107, 137]);
    },
  );

  it('[INB-040] goes on when some of what was covered is acknowledged', async () => {
    const first = await posted(desk);
    await posted(desk);
    rung.startNotifier();
    await desk.clock.advance(10_000);
    expect(rung.rungAt()).toEqual([0]);
    await rung.done(first.message_id);
    await desk.clock.advance(19_900);
    expect(rung.rungAt()).toEqual([0]);
    await desk.clock.advance(200);
    expect(rung.rungAt()).toEqual([0, 30]);
  });

  it.each([day, 291_500])(
    '[INB-044] is not frozen by a clock that is set back by %d ms: one notice within a second',
    async (ms) => {
      rung.startNotifier();
      await posted(desk);
      await desk.clock.advance(20_000);
      desk.clock.jump(-ms);
      await desk.clock.advance(1_000);
      expect(rung.rungAt()).toHaveLength(2);
      await desk.clock.advance(50_000);
      expect(rung.rungAt()).toHaveLength(2);
    },
  );

  it('[INB-044] still counts where its clock was set back and 300 s of it remain', async () => {
    rung.startNotifier();
    await posted(desk);
    await desk.clock.advance(20_000);
    desk.clock.jump(-290_000);
    desk.wake.touch();
    await desk.clock.advance(299_999);
    expect(rung.rungAt()).toHaveLength(1);
    await desk.clock.advance(1);
    expect(rung.rungAt()).toHaveLength(2);
  });

  it('[INB-044] rings once when its clock is set forward', async () => {
    rung.startNotifier();
    await posted(desk);
    await desk.clock.advance(20_000);
    desk.clock.jump(day);
    await desk.clock.advance(1_000);
    expect(rung.rungAt()).toHaveLength(2);
    await desk.clock.advance(50_000);
    expect(rung.rungAt()).toHaveLength(2);
  });

  it('[MSG-084] is held up by no id of a notice that its reader names: none, unknown, old or current', async () => {
    rung.startNotifier();
    await posted(desk);
    await desk.clock.advance(31_000);
    for (const name of ['none', 'unknown', 'old', 'current']) {
      const ids = rung.reservations().map(({ notification_id }) => String(notification_id));
      const notification_id = { none: undefined, unknown: 'ab12cd', old: ids[0], current: ids.at(-1) }[name];
      const request = { project: 'shop', ...(notification_id !== undefined && { notification_id }) };
      const plain = ok(receive(desk, { project: 'shop' }, ringing.caller));
      expect(ok(receive(desk, request, ringing.caller))).toEqual(plain);
      const before = rung.rungAt().length;
      const { delivery_id } = await posted(desk);
      await desk.clock.advance(30_000);
      expect(rung.rungAt().length).toBeGreaterThan(before);
      const covers = desk.rows('SELECT rung FROM reservation_cover WHERE delivery_id = ?', delivery_id);
      expect(covers).toContainEqual({ rung: 1 });
    }
  });

  it('never lets attention-worthy mail wait longer than 300 s, whatever happened before', async () => {
    const event = fc.oneof(
      fc.record({ act: fc.constant('arrive' as const), ms: fc.constant(0) }),
      fc.record({ act: fc.constant('take' as const), ms: fc.constant(0) }),
      fc.record({ act: fc.constant('pass' as const), ms: fc.integer({ min: 1, max: 200_000 }) }),
      fc.record({ act: fc.constant('jump' as const), ms: fc.constantFrom(-day, day, -40_000, 40_000) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(event, { maxLength: 8 }), async (events) => {
        const one = await openRung();
        one.startNotifier();
        const waiting: string[] = [];
        for (const { act, ms } of events) {
          if (act === 'arrive') waiting.push((await posted(one.desk)).message_id);
          if (act === 'take' && waiting.length > 0) await one.done(waiting.shift() as string);
          if (act === 'pass') await one.desk.clock.advance(ms);
          if (act === 'jump') one.desk.clock.jump(ms);
        }
        const before = one.rungAt().length;
        await one.desk.clock.advance(301_000);
        expect(one.rungAt().length > before).toBe(waiting.length > 0);
      }),
      { numRuns: 25, seed: 3 },
    );
  });
});
