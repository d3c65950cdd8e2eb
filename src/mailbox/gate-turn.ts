// Stop handlers run side by side. A gate holds its session's lock from when it has something to block for, and leaves its time
// on it when it ends: a listener reads no rows while it is held, nor before the gate of the Stop that started it has finished,
// so that the two do not announce the same mail.

import type { Lock, Locks } from '../ports/lock.ts';
import type { Store } from '../ports/store.ts';
import { limits } from '../protocol/limits.ts';
import type { Desk } from './desk.ts';
import { pause } from './patience.ts';

const lockName = (root: string): string => `gate-${root}`;
const rootOf = (store: Store, session: string): string =>
  store.read((tx) => tx.identity.chain(session)[0]) as string;

/** A listener may look at the lock this very moment; another gate is done in a tenth of it. */
const tries = 200;
const againMs = 10;

/** The turn of one gate: it holds the lock from when it has something to say, and leaves its time when it has ended. */
export function gateTurn(
  { store, clock }: Pick<Desk, 'store' | 'clock'>,
  locks: Locks,
  session: string,
): { begin(): Promise<void>; end(): void } {
  const name = lockName(rootOf(store, session));
  let lock: Lock | undefined;
  return {
    // Where another gate of the session runs, this one goes on beside it.
    begin: async () => {
      for (let left = tries; lock === undefined && left > 0; left -= 1) {
        lock = locks.tryTake(name);
        if (lock === undefined) await pause(clock, againMs);
      }
    },
    end: () => {
      lock?.release();
      locks.stamp(name, clock.nowMs());
    },
  };
}

/** Whether a listener may read its rows now. A gate is waited for no longer than 3 s. */
export function afterGates(options: {
  desk: Pick<Desk, 'store' | 'clock'>;
  locks: Locks;
  session: string;
  /** When the listener's process began, if a Stop began it. */
  stoppedAtMs: number | undefined;
}): () => boolean {
  const { desk, locks, session, stoppedAtMs } = options;
  const begunMs = desk.clock.elapsedMs();
  let ownIsDone = stoppedAtMs === undefined;
  let heldSinceMs: number | undefined;
  return () => {
    const name = lockName(rootOf(desk.store, session));
    const nowMs = desk.clock.elapsedMs();
    if (locks.isHeld(name)) {
      heldSinceMs ??= nowMs;
      return nowMs - heldSinceMs >= limits.gateWaitMs;
    }
    heldSinceMs = undefined;
    ownIsDone ||=
      (locks.stampedAtMs(name) ?? 0) >= (stoppedAtMs ?? 0) || nowMs - begunMs >= limits.gateWaitMs;
    return ownIsDone;
  };
}
