// Long polls: each looks, and where there is nothing waits to be told that something came. It listens before it looks, so that
// what is committed in between wakes it.

import type { Clock } from '../ports/clock.ts';
import type { Lease, QueueStore } from '../ports/relay-queue.ts';
import { relayLimits } from '../protocol/relay-http.ts';

/** One that is under way. */
interface Poll {
  ended: boolean;
  wake: () => void;
}

const nothing: Lease = { items: [], more: false };

export class Polls {
  readonly #store: Pick<QueueStore, 'lease' | 'watch'>;
  readonly #clock: Clock;
  /** The oldest of each queue first. */
  readonly #queues = new Map<string, Set<Poll>>();
  #over = false;

  constructor(store: Pick<QueueStore, 'lease' | 'watch'>, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /**
   * @param gone calls back when its client goes away
   * @returns nothing but an empty answer where it was ended: by a fifth one of its queue, or by `endAll`
   */
  async poll(
    queue: string,
    { waitMs, countMax }: { waitMs: number; countMax: number },
    gone: (end: () => void) => void,
  ): Promise<Lease> {
    const poll = this.#enter(queue);
    gone(() => end(poll));
    try {
      return await this.#run(queue, poll, { untilMs: this.#clock.elapsedMs() + waitMs, countMax });
    } finally {
      this.#leave(queue, poll);
    }
  }

  /** Ends all, and each later one at once. */
  endAll(): void {
    this.#over = true;
    for (const polls of this.#queues.values()) for (const poll of polls) end(poll);
  }

  async #run(
    queue: string,
    poll: Poll,
    { untilMs, countMax }: { untilMs: number; countMax: number },
  ): Promise<Lease> {
    for (;;) {
      const woken = new Promise<void>((resolve) => {
        poll.wake = resolve;
      });
      const unwatch = this.#store.watch(queue, poll.wake);
      try {
        if (poll.ended) return nothing;
        const lease = await this.#store.lease(queue, { countMax, bytesMax: relayLimits.pollBytesMax });
        const leftMs = untilMs - this.#clock.elapsedMs();
        if (lease.items.length > 0 || leftMs <= 0) return lease;
        const cancel = this.#clock.after(leftMs, poll.wake);
        await woken;
        cancel();
      } finally {
        unwatch();
      }
    }
  }

  #enter(queue: string): Poll {
    const polls = this.#queues.get(queue) ?? new Set();
    this.#queues.set(queue, polls);
    for (const oldest of polls) {
      if (polls.size < relayLimits.pollsOfQueueMax) break;
      polls.delete(oldest);
      end(oldest);
    }
    const poll: Poll = { ended: this.#over, wake: () => {} };
    polls.add(poll);
    return poll;
  }

  #leave(queue: string, poll: Poll): void {
    const polls = this.#queues.get(queue);
    polls?.delete(poll);
    if (polls?.size === 0) this.#queues.delete(queue);
  }
}

function end(poll: Poll): void {
  poll.ended = true;
  poll.wake();
}
