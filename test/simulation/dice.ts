// Randomness that a seed reproduces: every choice of the simulation is drawn here.

import type { Random } from '../../src/ports/random.ts';

export class Dice implements Random {
  #state: number;

  constructor(seed: number) {
    this.#state = Math.imul(seed, 0x9e3779b1) >>> 0;
  }

  /** Mulberry32: 32 random bits. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    const state = this.#state;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  }

  /** A whole number from 0 to `count` - 1. */
  below(count: number): number {
    return Math.floor((this.next() / 4_294_967_296) * count);
  }

  /** A whole number from `low` to `high`. */
  between(low: number, high: number): number {
    return low + this.below(high - low + 1);
  }

  chance(probability: number): boolean {
    return this.next() < probability * 4_294_967_296;
  }

  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)] as T;
  }

  /** One of the names, each as often as its weight says. */
  weighted<K extends string>(weights: Readonly<Record<K, number>>): K {
    const names = Object.keys(weights) as K[];
    let left = this.below(names.reduce((sum, name) => sum + weights[name], 0));
    return names.find((name) => {
      left -= weights[name];
      return left < 0;
    }) as K;
  }

  bytes(count: number): Uint8Array {
    const made = new Uint8Array(count);
    for (let at = 0; at < count; at += 1) made[at] = this.next() >>> 24;
    return made;
  }
}
