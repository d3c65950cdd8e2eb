// What is going to happen, in the order of a time that only the simulation moves. An event belongs to a process, and
// ends with it.

import type { Dice } from './dice.ts';
import type { Process } from './process.ts';

export interface Event {
  dueMs: number;
  /** Decides between events of one moment. */
  order: number;
  /** Absent where it is nobody's: the world's own doing. */
  owner: Process | undefined;
  label: string;
  run(): void;
  canceled: boolean;
}

/** A binary heap: the earliest event first. */
export class Timeline {
  elapsedMs = 0;
  readonly #heap: Event[] = [];

  add(event: Event): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(event);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent] as Event;
      if (!isBefore(event, above)) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = event;
  }

  /** The next event if it is due by `untilMs`; time moves to it. */
  next(untilMs: number): Event | undefined {
    const [first] = this.#heap;
    if (first === undefined || first.dueMs > untilMs) return undefined;
    this.#removeFirst();
    this.elapsedMs = Math.max(this.elapsedMs, first.dueMs);
    return first;
  }

  #removeFirst(): void {
    const heap = this.#heap;
    const last = heap.pop() as Event;
    if (heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Event, heap[child] as Event)) child += 1;
      if (!isBefore(heap[child] as Event, last)) break;
      heap[at] = heap[child] as Event;
      at = child;
    }
    heap[at] = last;
  }
}

const isBefore = (a: Event, b: Event): boolean =>
  a.dueMs < b.dueMs || (a.dueMs === b.dueMs && a.order < b.order);

/** Puts it on the timeline, unless whose it is has died. */
export function schedule(
  { timeline, dice }: { timeline: Timeline; dice: Dice },
  { owner, label, ms, run }: Pick<Event, 'owner' | 'label' | 'run'> & { ms: number },
): Event {
  const dueMs = timeline.elapsedMs + Math.max(0, Math.ceil(ms));
  const event: Event = { dueMs, order: dice.next(), owner, label, run, canceled: false };
  if (owner?.alive !== false) timeline.add(event);
  return event;
}

/** Most things take no time to speak of, a few take long. */
export function delayMs(dice: Dice): number {
  if (dice.chance(0.6)) return 0;
  return dice.chance(0.03) ? dice.below(800) : dice.below(4);
}
