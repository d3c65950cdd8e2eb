// Seeds that must hold, the seeds that once failed, and that a seed gives the same history each time.

import { describe, expect, it, vi } from 'vitest';
import { simulate } from './run.ts';
import { failedOnce } from './seeds.ts';
import { Tally } from './tally.ts';

vi.mock('node:net', () => import('./net.ts'));
vi.mock('../../src/router/socket-owner.ts', () => import('./socket-owner.ts'));

const seeds = [1, 2, 3, 4, 5, 6, 61, 62];
const steps = 8_000;
const met = new Tally();

const broken = async (seed: number, count: number) => {
  const { failure, trace, tally } = await simulate(seed, count);
  met.add(tally);
  return failure && { ...failure, trace };
};

describe('a simulated machine', () => {
  it.each(seeds)('keeps every promise with seed %d', async (seed) => {
    expect(await broken(seed, steps)).toBeUndefined();
  });

  it.each(failedOnce)(
    'keeps every promise with seed $seed, which failed once: $why',
    async ({ seed, steps: count }) => {
      expect(await broken(seed, count)).toBeUndefined();
    },
  );

  it('has the same history each time it is run with one seed, and another with another', async () => {
    const [first, again, other] = [
      await simulate(5, 4_000),
      await simulate(5, 4_000),
      await simulate(6, 4_000),
    ];
    expect(again).toMatchObject({ hash: first.hash, steps: first.steps, simulatedMs: first.simulatedMs });
    expect(other.hash).not.toBe(first.hash);
  });

  it('has met all that may happen to it', () => {
    const kills = ['router', 'server', 'listener', 'command', 'hook', 'host'].map((kind) => `killed ${kind}`);
    const sets = ['clock set', 'store locked', 'touches lost', 'cleared', 'session opened twice'];
    const ends = ['handed', 'printed', 'taken in', 'acceptances', 'connections ended: lease_expired'];
    const kinds = [
      'superseded',
      'fallbacks',
      'held',
      'sent to expire',
      'handed over again',
      'reservations by a listener',
    ];
    for (const what of [...kills, ...sets, ...ends, ...kinds, 'connections ended: superseded'])
      expect(met.of(what), what).toBeGreaterThan(0);
  });
});
