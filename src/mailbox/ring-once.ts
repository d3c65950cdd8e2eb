// One ring: the attempts within it and its time-out. A time-out is unknown, since the host may have taken it: it is not
// tried again, and what the adapter knows later is kept.

import type { Bell, RingItem, RingOutcome } from '../ports/bell.ts';
import type { Clock } from '../ports/clock.ts';
import { atMost, pause } from './patience.ts';

export interface RingResult {
  outcome: RingOutcome;
  /** What the adapter answers after its time was up. */
  late?: Promise<RingOutcome>;
}

export async function ringOnce(clock: Clock, bell: Bell, item: RingItem): Promise<RingResult> {
  const { attemptsMax, retryGapMs } = bell.describe();
  for (let attempt = 1; ; attempt += 1) {
    const result = await tryOnce(clock, bell, item);
    const again = result.outcome.outcome === 'rejected' && !result.outcome.permanent && attempt < attemptsMax;
    if (!again) return result;
    await pause(clock, retryGapMs);
  }
}

async function tryOnce(clock: Clock, bell: Bell, item: RingItem): Promise<RingResult> {
  const giveUp = new AbortController();
  const answer = bell.ring(item, giveUp.signal);
  const outcome = await atMost(clock, answer, bell.describe().ringTimeoutMs);
  if (outcome !== undefined) return { outcome };
  giveUp.abort();
  return { outcome: { outcome: 'unknown', code: 'host_outcome_timeout' }, late: answer };
}
