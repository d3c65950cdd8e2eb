// Whom a hook speaks for, and what waits for them: the one question behind reminder lines, gate and mid-turn line.

import type { Reach, WaitingGroup } from '../ports/mail.ts';
import type { Tx } from '../ports/store.ts';
import { namesOf } from '../sessions/principals.ts';

export interface Addressee {
  /** Declared or configured, else the session's own name; undefined where nothing names one. */
  recipient?: string;
  /** The session, as the host names it. */
  session?: string;
  /** Host and environment name different sessions: neither is trusted, and mail for nobody in particular counts alone. */
  doubtful?: boolean;
  /** What the session's live connection was handed whole is not spoken of. */
  withoutPushed?: boolean;
}

/** Mail to a session counts while that is live under the recipient, in the project where it is. */
export function reachOf(tx: Tx, addressee: Addressee, nowMs: number): Reach {
  const { recipient, session, doubtful = false, withoutPushed = false } = addressee;
  const principals = recipient === undefined ? [] : namesOf(tx, recipient);
  if (doubtful) return { principals, intended: [], targets: [] };
  const ids = session === undefined ? [] : tx.identity.chain(session);
  const live = tx.sessions
    .liveAnywhere(session === undefined ? { principals } : { ids }, nowMs)
    .filter(({ principal_id }) => principals.includes(principal_id));
  const targets = live.flatMap(({ project, session_id }) =>
    tx.identity.chain(session_id).map((id) => [project, id] as const),
  );
  return { principals, intended: ids, targets, ...(withoutPushed && { pushedTo: ids }) };
}

/** What waits, by project and session. */
export function waitingFor(tx: Tx, addressee: Addressee, nowMs: number): WaitingGroup[] {
  return tx.reminders.groups(reachOf(tx, addressee, nowMs));
}
