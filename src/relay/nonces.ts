// Nonces of the requests that were taken, as long as their signatures could be shown again.

import type { Clock } from '../ports/clock.ts';
import { relayLimits } from '../protocol/relay-http.ts';

export interface Nonces {
  /** `new` once for each nonce within 120 s; `full` where no more can be remembered, and so none be taken. */
  take(nonce: string): 'new' | 'seen' | 'full';
  /** Forgets those whose time is over. */
  prune(): void;
}

export function noncesBy(clock: Clock, most: number = relayLimits.noncesMax): Nonces {
  /** When each may be forgotten, the oldest first. */
  const until = new Map<string, number>();

  const prune = (): void => {
    const nowMs = clock.elapsedMs();
    for (const [nonce, untilMs] of until) {
      if (untilMs > nowMs) break;
      until.delete(nonce);
    }
  };

  return {
    take: (nonce) => {
      prune();
      if (until.has(nonce)) return 'seen';
      if (until.size >= most) return 'full';
      until.set(nonce, clock.elapsedMs() + relayLimits.nonceMs);
      return 'new';
    },
    prune,
  };
}
