// What every store of a relay does, whatever it is made of. The clock is the test's.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { HeldItem, QueueStore } from '../../src/ports/relay-queue.ts';
import { relayLimits, relayQuotas } from '../../src/protocol/relay-http.ts';
import { FakeClock } from '../contract/clock.ts';

export interface StoreUnderTest {
  store: QueueStore;
  /** The same store as after the end of its process. */
  restart(): Promise<QueueStore>;
  /** Ends it and removes what it left. */
  end(): Promise<void>;
}

const keyA = 'A'.repeat(43);
const keyB = `${'B'.repeat(42)}A`;
export const queueOf = (key: string, nth: number): string => `${key}.${String(nth).padStart(32, '0')}`;
const queue = queueOf(keyA, 1);
const other = queueOf(keyB, 1);

export const itemId = (nth: number): string => nth.toString(16).padStart(32, '0');
const bodyOf = (nth: number): Uint8Array => new Uint8Array(Buffer.from(`item ${nth}`));
const posted = (nth: number, more: { ttlMs?: number; body?: Uint8Array } = {}) => ({
  id: itemId(nth),
  ttlMs: 3_600_000,
  body: bodyOf(nth),
  ...more,
});
const idsOf = (items: readonly HeldItem[]): number[] => items.map(({ id }) => Number.parseInt(id, 16));
const tokensOf = (items: readonly HeldItem[]): string[] => items.map(({ token }) => token);
const bounds = { countMax: 16, bytesMax: relayLimits.pollBytesMax };
const dayMs = 86_400_000;

export function queueContract(name: string, open: (clock: FakeClock) => Promise<StoreUnderTest>): void {
  describe(name, () => {
    let clock: FakeClock;
    let under: StoreUnderTest;
    let store: QueueStore;

    beforeEach(async () => {
      clock = new FakeClock();
      under = await open(clock);
      store = under.store;
      await within(store.register(queue, { door: false }));
      await within(store.register(other, { door: false }));
    });
    afterEach(() => under.end());

    /** Lets the store's own timers run. */
    const within = async <T>(asked: Promise<T>): Promise<T> => {
      await clock.advance(1);
      return asked;
    };
    const post = (nth: number, more = {}, at = queue) => within(store.post(at, posted(nth, more)));
    const postAll = async (...all: number[]): Promise<void> => {
      for (const nth of all) expect(await post(nth)).toBe('accepted');
    };
    const lease = async (countMax = 16, at = queue): Promise<HeldItem[]> =>
      (await store.lease(at, { ...bounds, countMax })).items;
    const settle = (ack: string[], defer: { token: string; delayMs: number }[] = [], at = queue) =>
      within(store.settle(at, { ack, defer }));

    describe('posting', () => {
      it('takes items for registered queues alone', async () => {
        expect(await post(1, {}, queueOf(keyA, 9))).toBe('queue_unknown');
        expect(await lease(16, queueOf(keyA, 9))).toEqual([]);
        await within(store.register(queueOf(keyA, 9), { door: false }));
        expect(await lease(16, queueOf(keyA, 9))).toEqual([]);
      });

      it('takes an id once while it is queued, and again afterwards', async () => {
        await postAll(1);
        expect(await post(1, { body: bodyOf(9) })).toBe('duplicate');
        const [held, ...more] = await lease();
        expect(more).toEqual([]);
        expect(Buffer.from(held?.body as Uint8Array).toString()).toBe('item 1');
        expect(await post(1)).toBe('duplicate');
        await settle([held?.token as string]);
        expect(await post(1, { body: bodyOf(9) })).toBe('accepted');
        expect(idsOf(await lease())).toEqual([1]);
      });

      it('takes the same id in two queues', async () => {
        expect(await post(1)).toBe('accepted');
        expect(await post(1, {}, other)).toBe('accepted');
      });

      it('refuses what a full queue cannot hold, and keeps what it holds', async () => {
        const door = queueOf(keyA, 2);
        await within(store.register(door, { door: true }));
        const { itemsMax } = relayQuotas.door;
        for (let nth = 1; nth <= itemsMax; nth += 1) expect(await post(nth, {}, door)).toBe('accepted');
        expect(await post(itemsMax + 1, {}, door)).toBe('queue_full');
        expect(await post(itemsMax + 1)).toBe('accepted');
        const [oldest] = await lease(1, door);
        expect(idsOf([oldest as HeldItem])).toEqual([1]);
        await settle([oldest?.token as string], [], door);
        expect(await post(itemsMax + 1, {}, door)).toBe('accepted');
      });

      it('counts the bytes of a queue', async () => {
        const door = queueOf(keyA, 2);
        await within(store.register(door, { door: true }));
        const body = new Uint8Array(relayQuotas.door.bytesMax / 8);
        for (let nth = 1; nth <= 8; nth += 1) expect(await post(nth, { body }, door)).toBe('accepted');
        expect(await post(9, {}, door)).toBe('queue_full');
      });
    });

    describe('delivering', () => {
      it('goes by the order of acceptance, and says what is left', async () => {
        await postAll(5, 3, 4);
        const first = await store.lease(queue, { ...bounds, countMax: 2 });
        expect(idsOf(first.items)).toEqual([5, 3]);
        expect(first.more).toBe(true);
        const second = await store.lease(queue, bounds);
        expect(idsOf(second.items)).toEqual([4]);
        expect(second.more).toBe(false);
        expect(await lease()).toEqual([]);
      });

      it('says an age that the wall clock does not move', async () => {
        await postAll(1);
        clock.jump(dayMs);
        await clock.advance(5_000);
        expect((await lease())[0]?.ageMs).toBe(5_000 + 1);
      });

      it('ends an answer after passing its bytes, with at least one item', async () => {
        const body = new Uint8Array(400_000);
        for (const nth of [1, 2, 3, 4]) await post(nth, { body });
        const first = await store.lease(queue, bounds);
        expect(idsOf(first.items)).toEqual([1, 2, 3]);
        expect(first.more).toBe(true);
        const one = await store.lease(queue, { ...bounds, bytesMax: 0 });
        expect(idsOf(one.items)).toEqual([4]);
        expect(one.more).toBe(false);
      });

      it('delivers again after 30 s, counting', async () => {
        await postAll(1);
        expect(await lease()).toMatchObject([{ attempt: 1 }]);
        await clock.advance(29_000);
        expect(await lease()).toEqual([]);
        await clock.advance(1_000);
        expect(await lease()).toMatchObject([{ attempt: 2 }]);
        await clock.advance(30_000);
        expect(await lease()).toMatchObject([{ attempt: 3 }]);
      });

      it('never delivers what has had its time', async () => {
        await post(1, { ttlMs: 60_000 });
        await post(2, { ttlMs: 120_000 });
        expect(idsOf(await lease(1))).toEqual([1]);
        await clock.advance(60_000);
        expect(idsOf(await lease())).toEqual([2]);
        await within(store.sweep());
        expect(await post(1)).toBe('accepted');
      });

      it('lets others pass what nobody settles', async () => {
        const poison = Array.from({ length: relayLimits.leasedOfQueueMax }, (_, nth) => nth + 1);
        await postAll(...poison);
        for (let polls = 0; polls < 4; polls += 1) expect(await lease(64)).toHaveLength(64);
        await postAll(1_000, 1_001);
        expect(await lease()).toEqual([]);
        await clock.advance(relayLimits.leaseMs);
        const found = idsOf(await lease());
        expect(found).toHaveLength(16);
        expect(found).toEqual(expect.arrayContaining([1_000, 1_001]));
      });
    });

    describe('settling', () => {
      it('removes by a token, repeated and late ones too, and by those of this queue alone', async () => {
        await postAll(1);
        await post(7, {}, other);
        const [own] = tokensOf(await lease());
        const [foreign] = tokensOf(await lease(16, other));
        await clock.advance(relayLimits.leaseMs + 1);
        expect(await settle([foreign as string])).toEqual({ settled: 0, unknown: 1 });
        expect(await settle([own as string])).toEqual({ settled: 1, unknown: 0 });
        expect(await settle([own as string, own as string])).toEqual({ settled: 2, unknown: 0 });
        expect(await lease()).toEqual([]);
        expect(idsOf(await lease(16, other))).toEqual([7]);
      });

      it('keeps a deferred item back, and nothing behind it', async () => {
        await postAll(1, 2, 3);
        const [token] = tokensOf(await lease(1));
        const defer = [{ token: token as string, delayMs: 60_000 }];
        expect(await settle([], defer)).toEqual({ settled: 1, unknown: 0 });
        expect(idsOf(await lease())).toEqual([2, 3]);
        await clock.advance(59_000);
        expect(idsOf(await lease())).toEqual([2, 3]);
        await clock.advance(1_000);
        expect(await lease()).toMatchObject([{ id: itemId(1), attempt: 2 }]);
      });

      it('does not defer what is gone', async () => {
        await postAll(1);
        const [token] = tokensOf(await lease());
        await settle([token as string]);
        expect(await settle([], [{ token: token as string, delayMs: 1_000 }])).toEqual({
          settled: 0,
          unknown: 1,
        });
      });

      it('knows nothing of a queue that is not there', async () => {
        await postAll(1);
        const [token] = tokensOf(await lease());
        expect(await settle([token as string], [], queueOf(keyA, 9))).toEqual({ settled: 0, unknown: 1 });
      });
    });

    describe('waking', () => {
      const told = (at = queue): { count(): number; end(): void } => {
        let count = 0;
        const end = store.watch(at, () => {
          count += 1;
        });
        return { count: () => count, end };
      };

      it('tells of an item, once, and of no other queue', async () => {
        const [here, there] = [told(), told(other)];
        await postAll(1, 2);
        expect([here.count(), there.count()]).toEqual([1, 0]);
        there.end();
      });

      it('tells nobody who took the call back', async () => {
        const waiting = told();
        waiting.end();
        await postAll(1);
        expect(waiting.count()).toBe(0);
      });

      it('tells of the end of a lease, whenever it began', async () => {
        await postAll(1);
        const before = told();
        await lease();
        const after = told();
        await clock.advance(relayLimits.leaseMs - 1);
        expect([before.count(), after.count()]).toEqual([0, 0]);
        await clock.advance(1);
        expect([before.count(), after.count()]).toEqual([1, 1]);
      });
    });

    describe('presence', () => {
      it('tells the age of the last drain, and what its owner put there', async () => {
        await within(store.drain(queue));
        await clock.advance(40_000);
        const card = new Uint8Array([1, 2, 3]);
        await within(store.putCard(queue, card));
        const found = await store.presence(queue);
        expect(found).toMatchObject({ ageMs: 40_002, gone: false });
        expect([...(found?.card ?? [])]).toEqual([1, 2, 3]);
        await within(store.putCard(queue, new Uint8Array()));
        expect((await store.presence(queue))?.card).toBeUndefined();
        expect(await store.presence(queueOf(keyA, 9))).toBeUndefined();
        expect(await within(store.putCard(queueOf(keyA, 9), card))).toBe(false);
      });

      it('counts by the monotonic clock', async () => {
        await within(store.drain(queue));
        clock.jump(dayMs);
        await clock.advance(1_000);
        clock.jump(-2 * dayMs);
        expect((await store.presence(queue))?.ageMs).toBe(1_001);
      });

      it('is gone when it was closed, and keeps its mail until it is opened again', async () => {
        expect(await within(store.remove(queue, { purge: false }))).toBe(true);
        expect(await store.presence(queue)).toMatchObject({ gone: true });
        await postAll(1);
        expect(await within(store.register(queue, { door: false }))).toEqual({ created: false });
        expect(await store.presence(queue)).toMatchObject({ gone: false });
        await within(store.remove(queue, { purge: false }));
        expect(await within(store.drain(queue))).toBe(true);
        expect(await store.presence(queue)).toMatchObject({ gone: false });
        expect(idsOf(await lease())).toEqual([1]);
      });

      it('goes with everything when it is purged', async () => {
        await postAll(1);
        const [token] = tokensOf(await lease());
        await within(store.putCard(queue, new Uint8Array([1])));
        expect(await within(store.remove(queue, { purge: true }))).toBe(true);
        expect(await store.presence(queue)).toBeUndefined();
        expect(await post(2)).toBe('queue_unknown');
        expect(await within(store.drain(queue))).toBe(false);
        expect(await within(store.remove(queue, { purge: true }))).toBe(false);
        expect(await within(store.register(queue, { door: false }))).toEqual({ created: true });
        expect(await lease()).toEqual([]);
        expect((await store.presence(queue))?.card).toBeUndefined();
        await postAll(3);
        expect(await settle([token as string])).toMatchObject({ settled: 0 });
        expect(idsOf(await lease())).toEqual([3]);
      });

      it('is kept three days after the last drain, and the registration thirty [REL-036]', async () => {
        await within(store.putCard(queue, new Uint8Array([1])));
        await clock.advance(2 * dayMs);
        await within(store.drain(queue));
        await clock.advance(relayLimits.presenceMs - 2);
        await within(store.sweep());
        expect(await store.presence(queue)).toMatchObject({ gone: false });
        await clock.advance(2_000);
        expect(await store.presence(queue)).toBeUndefined();
        await within(store.sweep());
        expect(await store.presence(queue)).toBeUndefined();
        await post(1, { ttlMs: 40 * dayMs });
        await clock.advance(relayLimits.registrationMs - relayLimits.presenceMs - 60_000);
        await within(store.sweep());
        expect(await post(2)).toBe('accepted');
        await clock.advance(60_000);
        await within(store.sweep());
        expect(await post(3)).toBe('queue_unknown');
        await within(store.register(queue, { door: false }));
        expect(await lease()).toEqual([]);
        expect((await store.presence(queue))?.card).toBeUndefined();
      });

      it('is taken back to 90 s after a standstill', async () => {
        await clock.advance(dayMs);
        expect((await store.presence(queue))?.ageMs).toBeGreaterThanOrEqual(dayMs);
        store.resumed();
        expect((await store.presence(queue))?.ageMs).toBe(90_000);
        await clock.advance(5_000);
        expect((await store.presence(queue))?.ageMs).toBe(95_000);
        await within(store.drain(queue));
        expect((await store.presence(queue))?.ageMs).toBeLessThanOrEqual(1);
      });
    });

    it('lets a key have sixteen queues', async () => {
      for (let nth = 2; nth <= relayQuotas.queuesOfKeyMax; nth += 1)
        expect(await within(store.register(queueOf(keyA, nth), { door: false }))).toEqual({ created: true });
      expect(await within(store.register(queueOf(keyA, 99), { door: false }))).toBe('queue_limit');
      expect(await within(store.register(queue, { door: false }))).toEqual({ created: false });
      expect(await within(store.register(queueOf(keyB, 2), { door: false }))).toEqual({ created: true });
      await within(store.remove(queue, { purge: true }));
      expect(await within(store.register(queueOf(keyA, 99), { door: false }))).toEqual({ created: true });
    });

    it('keeps items, tokens, registrations, cards and ages over a restart, and forgets leases', async () => {
      await postAll(1, 2, 3);
      const before = await lease(2);
      await within(store.putCard(queue, new Uint8Array([7])));
      await within(store.drain(queue));
      await clock.advance(20_000);
      const { id } = store;
      store = await under.restart();
      expect(store.id).toBe(id);
      expect(await store.presence(queue)).toMatchObject({ gone: false, ageMs: expect.any(Number) });
      expect((await store.presence(queue))?.ageMs).toBeGreaterThanOrEqual(5_000);
      expect([...((await store.presence(queue))?.card ?? [])]).toEqual([7]);
      expect(await settle([before[0]?.token as string])).toEqual({ settled: 1, unknown: 0 });
      const later = { token: before[1]?.token as string, delayMs: 60_000 };
      expect(await settle([], [later])).toEqual({ settled: 1, unknown: 0 });
      expect(idsOf(await lease())).toEqual([3]);
      await clock.advance(60_000);
      expect(idsOf(await lease())).toEqual(expect.arrayContaining([2, 3]));
    });
  });
}
