import type { Clock } from '../ports/clock.ts';

/** The machine's clock and timers. A pending timer keeps the process alive. */
export const systemClock: Clock = {
  nowMs: () => Date.now(),
  elapsedMs: () => performance.now(),
  after: (ms, then) => {
    // A timer of 0 ms takes 1; an immediate comes right after what is ready to be read now.
    if (ms <= 0) {
      const turn = setImmediate(then);
      return () => clearImmediate(turn);
    }
    const timer = setTimeout(then, ms);
    return () => clearTimeout(timer);
  },
};
