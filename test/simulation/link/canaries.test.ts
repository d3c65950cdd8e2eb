// Each planted fault is caught by the checker that it is for, and by no other one, within a few seeds.

import { expect, it } from 'vitest';
import { canaries } from './canaries.ts';
import { simulateLink } from './run.ts';

const seeds = [1, 2, 3, 4, 5, 6];
const steps = 4_000;

it.each(Object.entries(canaries))('%s', async (_, { caughtBy, canary }) => {
  for (const seed of seeds) {
    const { failure } = await simulateLink(seed, steps, canary);
    if (failure === undefined) continue;
    expect(failure.checker, `seed ${seed}: ${failure.text}`).toBe(caughtBy);
    return;
  }
  expect.unreachable(`not caught by any of ${seeds.length} seeds`);
});
