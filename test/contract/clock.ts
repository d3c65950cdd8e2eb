// A clock that stands still until a test moves it, and randomness that a seed reproduces.

import type { Clock } from '../../src/ports/clock.ts';
import type { Random } from '../../src/ports/random.ts';

export const noonMs = Date.parse('2026-03-01T12:00:00.000Z');

interface Timer {
  dueMs: number;
  run(): void;
}

export class FakeClock implements Clock {
  #nowMs = noonMs;
  #timers: Timer[] = [];

  /** What somebody set the wall clock by. */
  #setMs = 0;

  nowMs(): number {
    return this.#nowMs;
  }

  elapsedMs(): number {
    return this.#nowMs - this.#setMs;
  }

  after(ms: number, then: () => void): () => void {
    const timer = { dueMs: this.#nowMs + Math.max(ms, 0), run: then };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  /** Timers that have not run yet. */
  get pending(): number {
    return this.#timers.length;
  }

  /** Lets time pass: each timer runs at its own moment, and what it began is let run before the next. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms;
    await settle();
    for (let next = this.#next(untilMs); next !== undefined; next = this.#next(untilMs)) {
      this.#nowMs = Math.max(this.#nowMs, next.dueMs);
      this.#timers = this.#timers.filter((timer) => timer !== next);
      next.run();
      await settle();
    }
    this.#nowMs = untilMs;
    await settle();
  }

  /** Someone sets the wall clock; timers keep running by their own count. */
  jump(ms: number): void {
    this.#nowMs += ms;
    this.#setMs += ms;
    for (const timer of this.#timers) timer.dueMs += ms;
  }

  #next(untilMs: number): Timer | undefined {
    return this.#timers.filter((timer) => timer.dueMs <= untilMs).sort((a, b) => a.dueMs - b.dueMs)[0];
  }
}

/** Lets everything run that needs no time. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 4; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** Mulberry32: the same bytes for the same seed. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  const byte = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) & 0xff;
  };
  return { bytes: (count) => Uint8Array.from({ length: count }, byte) };
}
