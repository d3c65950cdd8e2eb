// Whether a session can be rung at all. One whose bell refuses, or has been unarmed for ten minutes while no turn is known
// to run, is deaf: it registers without a bell, so that an exact send fails closed, until the bell can ring again.

import type { Bell } from '../ports/bell.ts';
import type { Clock } from '../ports/clock.ts';
import type { Wake } from '../ports/wake.ts';
import { untilBeat } from '../protocol/beat.ts';
import { limits } from '../protocol/limits.ts';

export interface ReachOptions {
  clock: Clock;
  wake: Pick<Wake, 'watch'>;
  bell: Bell;
  /** When a turn was last known to run, by the clock that nobody sets. */
  turnAtMs(): number;
  onChange(deaf: boolean): void;
  /** Told of a look that failed; the next one is made all the same. */
  onFault(error: unknown): void;
}

/** A session that can be rung is looked at seldom; a deaf one is heard again soon after its next turn. */
const lookMs = 30_000;
const lookDeafMs = 2_000;

/** @returns ends the watch */
export function watchReach({ clock, wake, bell, turnAtMs, onChange, onFault }: ReachOptions): () => void {
  let armedAtMs = clock.elapsedMs();
  let deaf = false;
  let cancel = (): void => {};

  const isDeaf = (): boolean => {
    const { state } = bell.state();
    if (state === 'refused') return true;
    if (state !== 'unarmed') {
      armedAtMs = clock.elapsedMs();
      return false;
    }
    return clock.elapsedMs() - Math.max(armedAtMs, turnAtMs()) >= limits.unarmedMsMax;
  };
  const look = (): void => {
    cancel();
    try {
      const before = deaf;
      deaf = isDeaf();
      if (deaf !== before) onChange(deaf);
    } catch (error) {
      onFault(error);
    }
    cancel = clock.after(deaf ? lookDeafMs : untilBeat(clock.elapsedMs(), lookMs), look);
  };

  // Only a deaf session has anything to learn from a touch.
  const unwatch = wake.watch(() => deaf && look());
  look();
  return () => {
    cancel();
    unwatch();
  };
}
