// Randomness that a seed reproduces: every choice of the simulation is drawn here.

import type { Random } from '../../src/ports/random.ts';

export class Dice implements Random {
  #a = 0x9e3779b9;
  #b = 0x243f6a88;
  #c = 0xb7e15162;
  #count = 1;

  constructor(seed: number) {
    this.#a ^= seed;
    this.#b ^= Math.floor(seed / 4_294_967_296);
    for (let round = 0; round < 12; round += 1) this.next();
  }

  /** Sfc32 (PractRand): 32 random bits of a state of 128, so that ids made of several draws do not collide. */
  next(): number {
    const sum = (this.#a + this.#b + this.#count) | 0;
    this.#count = (this.#count + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0;
    return sum >>> 0;
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
