import { Fault } from '../../protocol/errors.ts';

/**
 * A store that is busy is asked again, never reported as a wake: a listener that left for it would leave its session deaf
 * until the next turn. Undefined where `ended` came first.
 */
export async function whileBusy<T>(ended: AbortSignal, work: () => Promise<T>): Promise<T | undefined> {
  while (!ended.aborted) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof Fault && error.code === 'store_busy')) throw error;
    }
  }
  return undefined;
}
