// What a sender may be told of its recipient after the commit: observed, never stored.

import type { Tx } from '../ports/store.ts';
import type { Message } from '../protocol/message.ts';
import { bestPresence, type Presence } from '../protocol/session.ts';
import { namesOf } from './principals.ts';

/** The state of one session under all its ids. */
function presenceOfSession(tx: Tx, project: string, sessionId: string, nowMs: number): Presence {
  const ids = tx.identity.chain(sessionId);
  const live = tx.sessions.live(project, ids, nowMs);
  if (live !== undefined) return live.bell === 'none' ? 'deaf' : 'live';
  const last = tx.sessions.last(project, ids);
  if (last === undefined) return 'unknown';
  // A router that went away says nothing about the session.
  const unheard =
    last.disconnect_reason === null || /lease_expired|router_restart/.test(last.disconnect_reason);
  return unheard ? 'away' : 'gone';
}

/** The state of the session a message is for, or the best among the sessions of its principal. */
export function presenceOf(tx: Tx, message: Message, nowMs: number): Presence {
  const { project } = message;
  const exact = message.target_kind === 'session' ? message.recipient : message.intended_session;
  if (exact !== undefined) return presenceOfSession(tx, project, exact, nowMs);
  const sessions = namesOf(tx, message.recipient).flatMap((name) => tx.sessions.ofPrincipal(project, name));
  return bestPresence(sessions.map((session) => presenceOfSession(tx, project, session.session_id, nowMs)));
}
