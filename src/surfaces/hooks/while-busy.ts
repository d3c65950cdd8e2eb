import { pause } from '../../mailbox/patience.ts';
import type { Clock } from '../../ports/clock.ts';
import { Fault } from '../../protocol/errors.ts';

/** A read that finds the store locked fails at once: without a pause nothing else in the process would ever run. */
const pauseMs = 25;

/**
 * A store that is busy is asked again, never reported as a wake: a listener that left for it would leave its session deaf
 * until the next turn. Undefined where `ended` came first.
 */
export async function whileBusy<T>(
  { clock, ended }: { clock: Clock; ended: AbortSignal },
  work: () => T | Promise<T>,
): Promise<T | undefined> {
  while (!ended.aborted) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof Fault && error.code === 'store_busy')) throw error;
    }
    await pause(clock, pauseMs);
  }
  return undefined;
}
