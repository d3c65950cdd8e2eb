// Seeds that must hold, the seeds that once failed, and that a seed gives the same history each time.

import { describe, expect, it, vi } from 'vitest';
import { simulate } from './run.ts';
import { failedOnce } from './seeds.ts';

vi.mock('node:net', () => import('./net.ts'));
vi.mock('../../src/router/socket-owner.ts', () => import('./socket-owner.ts'));

const seeds = Array.from({ length: 8 }, (_, at) => at + 1);
const steps = 10_000;

const broken = async (seed: number, count: number) => {
  const { failure, trace } = await simulate(seed, count);
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

  it('meets all that may happen to it', async () => {
    const { tally } = await simulate(7, 20_000);
    const met = [
      'killed router',
      'killed server',
      'killed listener',
      'killed command',
      'clock set',
      'store locked',
    ];
    for (const what of [...met, 'handed', 'printed', 'taken in', 'cleared', 'touches lost'])
      expect(tally.of(what), what).toBeGreaterThan(0);
  });
});
