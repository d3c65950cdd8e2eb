// What a listener knows of its session's server, by the notifier lock that a server holds for life: an unattended host
// is let go when its server has gone; elsewhere the listener stands in for a server that is not there, so that a session
// with hooks alone is still rung. It takes the lock for one look at a time, so that a server that comes finds it free.

import type { Desk } from '../../mailbox/desk.ts';
import { notifierLockName } from '../../mailbox/notifier.ts';
import { type Ringing, reconcile } from '../../mailbox/ring.ts';
import type { Bell } from '../../ports/bell.ts';
import type { Lock, Locks } from '../../ports/lock.ts';
import { Fault } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';

export interface StandInOptions {
  desk: Pick<Desk, 'store' | 'clock' | 'random'>;
  locks: Locks;
  session: string;
  /** Without a person at it: such a host stays until its hooks end, so the listener leaves with the MCP server. */
  unattended: boolean;
  bell: Bell;
  /** As whom to ring; undefined where the project cannot be known. */
  ringing(): Promise<Ringing | undefined>;
}

/** A server that was just replaced is not taken for gone. */
const serverGoneMs = 1_000;
/** One that registered and went between two looks was never seen; the server of a resumed session may still start. */
const unseenGoneMs = 3_000;
/** The session-start hook links the ids of a /clear within this time. */
const standInAfterMs = 2_000;
/** What is due waits no longer than a second. */
const lookMs = 900;
/** However many touches there are. */
const lookAtMostMs = 400;

export interface StandIn {
  /** Looks, and rings where nobody else does. True once an unattended host's server has gone. */
  look(): Promise<boolean>;
  /** When to look again. */
  againMs(): number;
}

export function standIn(options: StandInOptions): StandIn {
  const { clock } = options.desk;
  let seen = false;
  let freeSinceMs: number | undefined;
  let lookedAtMs = Number.NEGATIVE_INFINITY;
  let skipped = false;
  return {
    look: async () => {
      const nowMs = clock.elapsedMs();
      skipped = nowMs - lookedAtMs < lookAtMostMs;
      if (skipped) return false;
      lookedAtMs = nowMs;
      const lock = options.locks.tryTake(notifierLockName(options.desk, options.session));
      seen ||= lock === undefined;
      freeSinceMs = lock === undefined ? undefined : (freeSinceMs ?? nowMs);
      const freeMs = freeSinceMs === undefined ? 0 : nowMs - freeSinceMs;
      const gone = options.unattended && serverIsGone(options, seen, freeMs);
      if (lock !== undefined) await ringWith(lock, options, !gone && freeMs >= standInAfterMs);
      return gone;
    },
    againMs: () => {
      if (skipped) return Math.max(lookedAtMs + lookAtMostMs - clock.elapsedMs(), 1);
      if (freeSinceMs === undefined) return limits.wakeTickMs;
      return options.unattended && seen ? serverGoneMs : lookMs;
    },
  };
}

function serverIsGone({ desk, session }: StandInOptions, seen: boolean, freeMs: number): boolean {
  if (seen) return freeMs >= serverGoneMs;
  if (freeMs < unseenGoneMs) return false;
  return desk.store.read((tx) => tx.sessions.everRegistered(tx.identity.chain(session)));
}

async function ringWith(lock: Lock, options: StandInOptions, due: boolean): Promise<void> {
  try {
    const ringing = due ? await options.ringing() : undefined;
    if (ringing !== undefined) await reconcile(options.desk, ringing, options.bell, rethrowDefect);
  } catch (error) {
    rethrowDefect(error);
  } finally {
    lock.release();
  }
}

/** A store that cannot be written now is tried again at the next look. */
function rethrowDefect(error: unknown): void {
  if (!(error instanceof Fault)) throw error;
}
