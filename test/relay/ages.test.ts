// What a relay says of an owner's last drain when the relay itself was away.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, it } from 'vitest';
import type { QueueStore } from '../../src/ports/relay-queue.ts';
import { watchStillness } from '../../src/relay/stillness.ts';
import { openRelayStore } from '../../src/store/relay/open.ts';
import { FakeClock, seededRandom, settle } from '../contract/clock.ts';
import { queueOf } from './queue-contract.ts';

const hourMs = 3_600_000;

it('ages rise by the monotonic clock, and are taken back to 90 s after a restart or a standstill [REL-038]', async () => {
  const directory = mkdtempSync(path.join(tmpdir(), 'pb-relay-'));
  const clock = new FakeClock();
  const open = (): Promise<QueueStore> =>
    openRelayStore({ path: path.join(directory, 'relay.db'), clock, random: seededRandom(1) });
  const within = async <T>(asked: Promise<T>): Promise<T> => {
    await clock.advance(1);
    return asked;
  };
  const queue = queueOf('A'.repeat(43), 1);
  let store = await open();
  const ageMs = async (): Promise<number> => (await store.presence(queue))?.ageMs ?? Number.NaN;
  let unwatch = watchStillness(clock, () => store.resumed());
  try {
    await within(store.register(queue, { door: false }));
    await clock.advance(2 * hourMs);
    expect(await ageMs()).toBe(2 * hourMs + 1);
    await within(store.drain(queue));
    // Somebody sets the wall clock back: that is no time.
    clock.jump(-hourMs);
    await clock.advance(60_000);
    expect(await ageMs()).toBe(60_001);
    await clock.advance(hourMs);
    expect(await ageMs()).toBe(hourMs + 60_001);

    // The machine sleeps: the wall clock goes on, the monotonic one and all timers do not.
    clock.jump(8 * hourMs);
    await clock.advance(10_000);
    expect(await ageMs()).toBeGreaterThanOrEqual(90_000);
    expect(await ageMs()).toBeLessThanOrEqual(100_000);
    expect(await store.presence(queue)).toMatchObject({ gone: false });
    await within(store.drain(queue));
    expect(await ageMs()).toBeLessThanOrEqual(1);

    // It is started again after a night.
    unwatch();
    await clock.advance(20_000);
    await within(store.close());
    await clock.advance(8 * hourMs);
    store = await open();
    unwatch = watchStillness(clock, () => store.resumed());
    expect(await ageMs()).toBe(90_000);
    await clock.advance(5_000);
    expect(await ageMs()).toBe(95_000);
    await within(store.drain(queue));
    expect(await ageMs()).toBeLessThanOrEqual(1);

    // After a moment, the drain before it still counts.
    await clock.advance(20_000);
    await within(store.close());
    store = await open();
    expect(await ageMs()).toBeGreaterThanOrEqual(20_000);
    expect(await ageMs()).toBeLessThan(21_000);
  } finally {
    unwatch();
    await within(store.close());
    await settle();
    rmSync(directory, { recursive: true });
  }
});
