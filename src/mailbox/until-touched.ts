// Waiting for the store to say something: asked again after each touch, and on a tick where a writer may have died
// between its commit and its touch.

import { limits } from '../protocol/limits.ts';
import type { Desk } from './desk.ts';

/** The first value that `look` finds within `waitMs`, else undefined. `ended` stops the wait. */
export function untilTouched<T>(
  desk: Pick<Desk, 'store' | 'clock' | 'wake'>,
  waitMs: number,
  look: () => T | undefined,
  ended?: AbortSignal,
): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const deadline = desk.clock.elapsedMs() + waitMs;
    let cancelTick = (): void => {};
    let finished = false;
    const finish = (settle: () => void): void => {
      finished = true;
      cancelTick();
      unwatch();
      ended?.removeEventListener('abort', onEnd);
      settle();
    };
    const onEnd = (): void => finish(() => resolve(undefined));
    const check = (): void => {
      try {
        const found = look();
        if (found !== undefined) finish(() => resolve(found));
      } catch (error) {
        finish(() => reject(error));
      }
    };
    const tick = (): void => {
      if (finished) return;
      const left = deadline - desk.clock.elapsedMs();
      if (left <= 0 || ended?.aborted) {
        onEnd();
        return;
      }
      cancelTick = desk.clock.after(Math.min(left, limits.wakeTickMs), () => {
        check();
        tick();
      });
    };
    const unwatch = desk.wake.watch(check);
    ended?.addEventListener('abort', onEnd);
    check();
    tick();
  });
}
