// The notifier of a session: the one process that holds its lock rings for it on the schedule of its reservation.
// It sleeps until a touch, or until the next due time.

import type { Bell } from '../ports/bell.ts';
import type { Lock, Locks } from '../ports/lock.ts';
import type { Desk } from './desk.ts';
import { type Ringing, reconcile } from './ring.ts';

/** How often a process asks for a lock that another holds: its holder's death is noticed within a second. */
const lockRetryMs = 500;
/** While mail waits for its next ring: a clock that was set back is noticed within a second. */
const dueLookMs = 900;
/** A look without cause, in case a touch and the router that repeats it were both lost. */
const idleLookMs = 60_000;

export interface Notifier {
  stop(): void;
}

/** The lock's name is that of the chain's first id, so that all ids of a session share one notifier. */
export function notifierLockName(desk: Pick<Desk, 'store'>, sessionId: string): string {
  return `notifier-${desk.store.read((tx) => tx.identity.chain(sessionId))[0]}`;
}

/** The lock of the session's one listener, whose first id is `root`. */
export const listenerLockName = (root: string): string => `listener-${root}`;

/** @param onFault told of a round that failed; the next one begins afresh */
export function runNotifier(
  desk: Desk,
  locks: Locks,
  ringing: Ringing,
  bell: Bell,
  onFault: (error: unknown) => void,
): Notifier {
  let lock: Lock | undefined;
  let stopped = false;
  let running = false;
  let again = false;
  let cancelTimer = (): void => {};

  const wakeAfter = (ms: number): void => {
    cancelTimer();
    if (!stopped) cancelTimer = desk.clock.after(ms, look);
  };

  const round = async (): Promise<void> => {
    if (lock?.held() === false) {
      lock.release();
      lock = undefined;
    }
    lock ??= locks.tryTake(notifierLockName(desk, ringing.caller.session));
    if (lock === undefined) return wakeAfter(lockRetryMs);
    const untilMs = await reconcile(desk, ringing, bell, onFault);
    if (untilMs === undefined) wakeAfter(idleLookMs);
    else wakeAfter(Math.min(Math.max(untilMs - desk.clock.nowMs(), 0), dueLookMs));
  };

  function look(): void {
    if (stopped) return;
    again = running;
    if (running) return;
    running = true;
    round()
      .catch((error: unknown) => {
        onFault(error);
        wakeAfter(lockRetryMs);
      })
      .finally(() => {
        running = false;
        if (again) look();
      });
  }

  const unwatch = desk.wake.watch(look);
  look();
  return {
    stop: () => {
      stopped = true;
      cancelTimer();
      unwatch();
      lock?.release();
    },
  };
}
