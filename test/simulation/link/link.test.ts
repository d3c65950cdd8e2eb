// Seeds of a world of machines and relays that must hold, and that a seed gives the same history each time.

import { describe, expect, it } from 'vitest';
import { Tally } from '../tally.ts';
import { simulateLink } from './run.ts';

const seeds = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
const steps = 4_000;
const met = new Tally();
const happened = [
  'killed router',
  'killed command',
  'killed right after a commit',
  'routers stopped',
  'requests lost',
  'answers lost',
  'requests twice',
  'cut machine',
  'cut relay',
  'restart relay',
  'wipe relay',
  'relay down',
  'set clock',
  'sent',
  'read',
  'disposed',
  'discarding',
  'asked',
  'accepted',
  'trusts no more',
];

const broken = async (seed: number) => {
  const { failure, trace, state, tally } = await simulateLink(seed, steps);
  met.add(tally);
  return failure && { ...failure, state, trace };
};

describe('machines that are linked', () => {
  it.each(seeds)('keep every promise with seed %d', async (seed) => {
    expect(await broken(seed)).toBeUndefined();
  });

  it('have the same history each time they are run with one seed, and another with another', async () => {
    const [first, again, other] = [
      await simulateLink(3, 2_000),
      await simulateLink(3, 2_000),
      await simulateLink(4, 2_000),
    ];
    expect(again).toMatchObject({ hash: first.hash, steps: first.steps, simulatedMs: first.simulatedMs });
    expect(other.hash).not.toBe(first.hash);
  });

  it('have met what happens often', () => {
    const types = ['message', 'receipt', 'query', 'pair_request', 'pair_accept'];
    const deeds = ['again', 'changed', 'moved', 'stranger', 'peer'];
    const all = [
      ...happened,
      ...types.map((type) => `posted ${type}`),
      ...deeds.map((deed) => `intruder: ${deed}`),
    ];
    for (const what of all) expect(met.of(what), what).toBeGreaterThan(0);
  });
});
