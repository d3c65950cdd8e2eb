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

export interface Polls {
  /** How many are under way. */
  readonly open: number;
  /**
   * @param gone calls back when its client goes away
   * @returns nothing but an empty answer where it was ended: by a fifth one of its queue, or by `endAll`
   */
  poll(
    queue: string,
    options: { waitMs: number; countMax: number },
    gone: (end: () => void) => void,
  ): Promise<Lease>;
  /** Ends all, and each later one at once. */
  endAll(): void;
}

const nothing: Lease = { items: [], more: false };

export function pollsOf(store: Pick<QueueStore, 'lease' | 'watch'>, clock: Clock): Polls {
  const queues = new Map<string, Set<Poll>>();
  let open = 0;
  let over = false;

  const end = (poll: Poll): void => {
    poll.ended = true;
    poll.wake();
  };

  const enter = (queue: string): Poll => {
    const polls = queues.get(queue) ?? new Set();
    queues.set(queue, polls);
    for (const oldest of polls) {
      if (polls.size < relayLimits.pollsOfQueueMax) break;
      polls.delete(oldest);
      end(oldest);
    }
    const poll: Poll = { ended: over, wake: () => {} };
    polls.add(poll);
    open += 1;
    return poll;
  };

  const leave = (queue: string, poll: Poll): void => {
    open -= 1;
    const polls = queues.get(queue);
    polls?.delete(poll);
    if (polls?.size === 0) queues.delete(queue);
  };

  const run = async (
    queue: string,
    poll: Poll,
    { untilMs, countMax }: { untilMs: number; countMax: number },
  ): Promise<Lease> => {
    for (;;) {
      const woken = new Promise<void>((resolve) => {
        poll.wake = resolve;
      });
      const unwatch = store.watch(queue, poll.wake);
      try {
        if (poll.ended) return nothing;
        const lease = await store.lease(queue, { countMax, bytesMax: relayLimits.pollBytesMax });
        const leftMs = untilMs - clock.elapsedMs();
        if (lease.items.length > 0 || leftMs <= 0) return lease;
        const cancel = clock.after(leftMs, poll.wake);
        await woken;
        cancel();
      } finally {
        unwatch();
      }
    }
  };

  return {
    get open() {
      return open;
    },
    poll: async (queue, { waitMs, countMax }, gone) => {
      const poll = enter(queue);
      gone(() => end(poll));
      try {
        return await run(queue, poll, { untilMs: clock.elapsedMs() + waitMs, countMax });
      } finally {
        leave(queue, poll);
      }
    },
    endAll: () => {
      over = true;
      for (const polls of queues.values()) for (const poll of polls) end(poll);
    },
  };
}
