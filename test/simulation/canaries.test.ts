// Each checker catches the fault that is planted for it, and no other one does.

import { expect, it, vi } from 'vitest';
import { canaries } from './canaries.ts';
import { simulate } from './run.ts';

vi.mock('node:net', () => import('./net.ts'));
vi.mock('../../src/router/socket-owner.ts', () => import('./socket-owner.ts'));

const seeds = [1, 2, 3];
const steps = 12_000;

it.each(Object.entries(canaries))('%s', async (name, canary) => {
  for (const seed of seeds) {
    const { failure } = await simulate(seed, canary.steps ?? steps, canary);
    expect(failure?.checker, `seed ${seed}: ${failure?.text}`).toBe(canary.caughtBy ?? name);
  }
});
