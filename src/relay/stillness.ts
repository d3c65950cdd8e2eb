// Notices that the process stood still, with its machine or alone: then no owner could drain, and none of them is gone.

import type { Clock } from '../ports/clock.ts';

const tickMs = 10_000;
/** More than a busy machine keeps a timer waiting. */
const lateMs = 30_000;

/** Calls `resumed` after each standstill. @returns ends it */
export function watchStillness(clock: Clock, resumed: () => void): () => void {
  let cancel = (): void => {};
  const tick = (): void => {
    const wallMs = clock.nowMs();
    const elapsedMs = clock.elapsedMs();
    cancel = clock.after(tickMs, () => {
      // The monotonic clock stops with the machine, the other one with nothing.
      const passedMs = Math.max(clock.nowMs() - wallMs, clock.elapsedMs() - elapsedMs);
      if (passedMs > tickMs + lateMs) resumed();
      tick();
    });
  };
  tick();
  return () => cancel();
}
