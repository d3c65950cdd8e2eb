// How a host takes a ring: mostly it does as it should; else it refuses, hangs, answers late, or dies over it.

import type { Process } from './process.ts';
import type { Ringer, RingItem, RingOutcome } from './product.ts';
import type { Hooks } from './town.ts';
import type { World } from './world.ts';

type Ring = (item: RingItem) => Promise<RingOutcome>;

const weights = {
  refuses: 3,
  hangs: 1,
  late: 3,
  silent: 2,
  'dies before': 2,
  'dies after': 2,
  'late answer': 3,
};

export type MoodName = keyof typeof weights;

export class Mood implements Ringer {
  readonly #world: World;
  readonly #process: Process;
  readonly #hooks: Hooks;

  constructor(world: World, process: Process, hooks: Hooks) {
    this.#world = world;
    this.#process = process;
    this.#hooks = hooks;
  }

  ring(item: RingItem, bell: Ring): Promise<RingOutcome> {
    const { dice, faults, tally } = this.#world;
    const instead = this.#hooks.ring?.(item);
    if (instead !== undefined) return Promise.resolve(instead);
    if (!dice.chance(faults.badRing)) return bell(item);
    const mood = this.#hooks.mood ?? dice.weighted(weights);
    tally.count(`bell ${mood}`);
    return this.#badly(mood, item, bell);
  }

  async #badly(mood: MoodName, item: RingItem, bell: Ring): Promise<RingOutcome> {
    const { dice } = this.#world;
    switch (mood) {
      case 'refuses':
        return {
          outcome: 'rejected',
          code: dice.chance(0.5) ? 'adapter_rejected' : 'adapter_error',
          permanent: dice.chance(0.5),
        };
      case 'silent':
        return { outcome: 'unknown', code: 'host_outcome_timeout' };
      case 'hangs':
        await this.#waits(dice.between(60_000, 120_000));
        return bell(item);
      case 'late':
        await this.#waits(dice.between(9_000, 14_000));
        return bell(item);
      case 'late answer': {
        const outcome = await bell(item);
        await this.#waits(dice.between(9_000, 14_000));
        return outcome;
      }
      case 'dies before':
        return this.#dies();
      case 'dies after':
        await bell(item);
        return this.#dies();
    }
  }

  #waits(ms: number): Promise<void> {
    return new Promise((resolve) => this.#world.later(this.#process, 'bell', ms, resolve));
  }

  #dies(): Promise<never> {
    this.#world.kill(this.#process);
    return new Promise(() => {});
  }
}
