// Whose mail a call is about.

import type { Inbox } from '../ports/mail.ts';
import type { Tx } from '../ports/store.ts';
import { Refusal, type Result } from '../protocol/errors.ts';
import { namesOf } from '../sessions/principals.ts';
import type { Who } from './desk.ts';

/**
 * The caller's inbox: its session under every id and its principal in the project. A caller without a session names
 * project and recipient; it then sees what the live sessions of that principal wait for, but nothing intended.
 */
export function inboxOf(
  tx: Tx,
  caller: Who,
  named: { project?: string; recipient?: string },
  nowMs: number,
): Result<Inbox> {
  const { project, recipient } = named;
  if (project === undefined)
    return new Refusal('project_unavailable', 'no project is bound to this caller; pass project');
  if (caller.session === undefined) {
    if (recipient === undefined)
      return new Refusal('invalid_request', 'a caller without a session must name recipient', {
        field: 'recipient',
      });
    return {
      project,
      principals: [recipient],
      targets: liveSessions(tx, project, recipient, nowMs),
      intended: [],
      named: true,
    };
  }
  const ids = tx.identity.chain(caller.session);
  const principals = recipient === undefined ? principalsOf(tx, project, ids, caller) : [recipient];
  return { project, principals, targets: ids, intended: ids, named: recipient !== undefined };
}

/** Every id of each live session of the principal. */
function liveSessions(tx: Tx, project: string, principal: string, nowMs: number): string[] {
  return tx.sessions.connectionsOf(project, principal).flatMap((session) => {
    const ids = tx.identity.chain(session.session_id);
    return tx.sessions.live(project, ids, nowMs)?.principal_id === principal ? ids : [];
  });
}

/** The registered principal, else the configured one, under each of its names. */
export function principalsOf(tx: Tx, project: string, ids: readonly string[], caller: Who): string[] {
  const principal = tx.sessions.registered(project, ids)?.principal_id ?? caller.principal;
  return principal === undefined ? [] : namesOf(tx, principal);
}
