import type { Clock } from '../ports/clock.ts';

/** The machine's clock and timers. A pending timer keeps the process alive. */
export const systemClock: Clock = {
  nowMs: () => Date.now(),
  elapsedMs: () => performance.now(),
  after: (ms, then) => {
    const timer = setTimeout(then, ms);
    return () => clearTimeout(timer);
  },
};
