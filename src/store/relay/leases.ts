// Who holds which item, and until when: in memory alone. A restart forgets it, and every item that was not acknowledged is
// delivered again.

import { relayLimits } from '../../protocol/relay-http.ts';

interface Held {
  untilMs: number;
  attempt: number;
  /** By its reader, for later: it takes no place among the leased. */
  deferred: boolean;
}

/** Of one queue; none is kept where nothing is held. */
interface QueueLeases {
  /** Items up to here were delivered before; those of them that are still queued are in `held`. */
  deliveredTo: number;
  held: Map<number, Held>;
  /** Whether the next one is delivered again rather than for the first time, where both could be. */
  againFirst: boolean;
}

/** Moments are those of the monotonic clock. */
export class Leases {
  readonly #queues = new Map<string, QueueLeases>();

  deliveredTo(queue: string): number {
    return this.#queues.get(queue)?.deliveredTo ?? 0;
  }

  isHeld(queue: string, item: number): boolean {
    return this.#queues.get(queue)?.held.has(item) ?? false;
  }

  /** Items whose time is over: to be delivered again, the one that waits longest first. */
  due(queue: string, nowMs: number): number[] {
    const held = [...(this.#queues.get(queue)?.held ?? [])].filter(([, { untilMs }]) => untilMs <= nowMs);
    return held.toSorted(([, a], [, b]) => a.untilMs - b.untilMs).map(([item]) => item);
  }

  /** How many more may be leased at a time. */
  room(queue: string, nowMs: number): number {
    let leased = 0;
    for (const { untilMs, deferred } of this.#queues.get(queue)?.held.values() ?? [])
      if (untilMs > nowMs && !deferred) leased += 1;
    return relayLimits.leasedOfQueueMax - leased;
  }

  /** Whose turn it is; each call passes it on. */
  takesAgainFirst(queue: string): boolean {
    const state = this.#queues.get(queue);
    if (state === undefined) return false;
    state.againFirst = !state.againFirst;
    return !state.againFirst;
  }

  /** @returns which delivery of it this is */
  lease(queue: string, item: number, nowMs: number): number {
    const state = this.#make(queue);
    const attempt = (state.held.get(item)?.attempt ?? 0) + 1;
    state.held.set(item, { untilMs: nowMs + relayLimits.leaseMs, attempt, deferred: false });
    return attempt;
  }

  /** Everything up to this item has been delivered at least once. */
  passed(queue: string, item: number): void {
    const state = this.#make(queue);
    state.deliveredTo = Math.max(state.deliveredTo, item);
  }

  defer(queue: string, item: number, untilMs: number): void {
    const { held } = this.#make(queue);
    held.set(item, { untilMs, attempt: held.get(item)?.attempt ?? 1, deferred: true });
  }

  /** The item is gone. */
  end(queue: string, item: number): void {
    const state = this.#queues.get(queue);
    if (state === undefined) return;
    state.held.delete(item);
    if (state.held.size === 0) this.#queues.delete(queue);
  }

  endAll(queue: string): void {
    this.#queues.delete(queue);
  }

  /** When the next one ends; undefined where none is held. */
  nextEndMs(queue: string, nowMs: number): number | undefined {
    let next: number | undefined;
    for (const { untilMs } of this.#queues.get(queue)?.held.values() ?? [])
      if (untilMs > nowMs && (next === undefined || untilMs < next)) next = untilMs;
    return next;
  }

  #make(queue: string): QueueLeases {
    let state = this.#queues.get(queue);
    if (state === undefined) {
      state = { deliveredTo: 0, held: new Map(), againFirst: false };
      this.#queues.set(queue, state);
    }
    return state;
  }
}
