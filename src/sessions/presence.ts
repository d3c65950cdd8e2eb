// What a sender may be told of its recipient after the commit: observed, never stored.

import type { ConnectionRow } from '../ports/presence.ts';
import type { Tx } from '../ports/store.ts';
import { type Message, sessionMeant } from '../protocol/message.ts';
import { bestPresence, isLive, isUnheard, type Presence } from '../protocol/session.ts';
import { takesNoMore } from './attempts.ts';
import { namesOf } from './principals.ts';

/** What a sender may know of whoever holds, or last held, this connection. */
function presenceBy(tx: Tx, connection: ConnectionRow | undefined, nowMs: number): Presence {
  if (connection === undefined) return 'unknown';
  if (isLive(connection, nowMs)) {
    if (connection.bell === 'none') return 'deaf';
    return takesNoMore(tx, connection) ? 'full' : 'live';
  }
  return isUnheard(connection.disconnect_reason) ? 'away' : 'gone';
}

/** The state of one session under all its ids. */
function presenceOfSession(tx: Tx, project: string, sessionId: string, nowMs: number): Presence {
  const ids = tx.identity.chain(sessionId);
  return presenceBy(tx, tx.sessions.live(project, ids, nowMs) ?? tx.sessions.last(project, ids), nowMs);
}

/** The state of the session a message is for, or the best among those that its principal has or had. */
export function presenceOf(tx: Tx, message: Message, nowMs: number): Presence {
  const { project } = message;
  const exact = sessionMeant(message);
  if (exact !== undefined) return presenceOfSession(tx, project, exact, nowMs);
  const connections = namesOf(tx, message.recipient).flatMap((name) =>
    tx.sessions.connectionsOf(project, name),
  );
  return bestPresence(connections.map((connection) => presenceBy(tx, connection, nowMs)));
}
