// Wakes those who wait for an item of a queue: after a commit that brought one, and when a lease ends.

import type { Clock } from '../../ports/clock.ts';

interface Waiting {
  thens: Set<() => void>;
  /** Takes back the timer for the end of a lease. */
  cancel: () => void;
}

export class Arrivals {
  readonly #queues = new Map<string, Waiting>();
  readonly #clock: Clock;
  readonly #nextEndMs: (queue: string, nowMs: number) => number | undefined;

  /** @param nextEndMs when the next lease of a queue ends, by the monotonic clock */
  constructor(clock: Clock, nextEndMs: (queue: string, nowMs: number) => number | undefined) {
    this.#clock = clock;
    this.#nextEndMs = nextEndMs;
  }

  watch(queue: string, then: () => void): () => void {
    const waiting = this.#queues.get(queue) ?? { thens: new Set(), cancel: () => {} };
    this.#queues.set(queue, waiting);
    waiting.thens.add(then);
    this.#arm(queue, waiting);
    return () => {
      waiting.thens.delete(then);
      if (waiting.thens.size === 0 && this.#queues.get(queue) === waiting) this.#forget(queue, waiting);
    };
  }

  /** All of them, once: which of them gets it is theirs to see. */
  tell(queue: string): void {
    const waiting = this.#queues.get(queue);
    if (waiting === undefined) return;
    this.#forget(queue, waiting);
    for (const then of waiting.thens) then();
  }

  /** Leases have changed. */
  leased(queue: string): void {
    const waiting = this.#queues.get(queue);
    if (waiting !== undefined) this.#arm(queue, waiting);
  }

  #arm(queue: string, waiting: Waiting): void {
    waiting.cancel();
    const nowMs = this.#clock.elapsedMs();
    const endMs = this.#nextEndMs(queue, nowMs);
    waiting.cancel =
      endMs === undefined ? () => {} : this.#clock.after(endMs - nowMs, () => this.tell(queue));
  }

  #forget(queue: string, waiting: Waiting): void {
    waiting.cancel();
    this.#queues.delete(queue);
  }
}
