// A session becomes reachable: one live connection at a time, under a generation that only rises.

import { newId, timestamp } from '../mailbox/desk.ts';
import type { ConnectionRow } from '../ports/presence.ts';
import type { Tx } from '../ports/store.ts';
import { Refusal, type Result } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import { bellStrength, type ConnectionKey, type Registration } from '../protocol/session.ts';
import { endConnection } from './disconnect.ts';
import { namesOf } from './principals.ts';
import type { Switchboard } from './switchboard.ts';

export interface Registered extends ConnectionKey {
  lease_ms: number;
  /** The connections that this one replaced. */
  replaced: ConnectionRow[];
}

/** Refuses `bell_outranked` and `session_identity_conflict`; a stronger or equal bell replaces the live connection. */
export async function register(board: Switchboard, registration: Registration): Promise<Result<Registered>> {
  const result = await board.store.write((tx) => connect(tx, board, registration));
  board.wake.touch();
  return result;
}

function connect(tx: Tx, board: Switchboard, registration: Registration): Result<Registered> {
  const { project, session_id } = registration;
  const nowMs = board.clock.nowMs();
  const replaced = tx.sessions.allLive(project, tx.identity.chain(session_id), nowMs);
  for (const live of replaced) {
    const refusal = outranked(tx, live, registration);
    if (refusal !== undefined) return refusal;
  }
  for (const live of replaced) endConnection(tx, board, live.connection_id, 'superseded');
  const lease_ms = Math.min(registration.lease_ms ?? limits.leaseMsDefault, limits.leaseMsMax);
  const generation = (tx.sessions.registered(project, [session_id])?.generation ?? 0) + 1;
  const connection_id = newId(board, 'con');
  tx.sessions.connect({
    registration,
    connection_id,
    generation,
    router_instance: board.instance,
    lease_expires_at_ms: nowMs + lease_ms,
    at: timestamp(board),
  });
  return { connection_id, generation, lease_ms, replaced };
}

/** The scoped names of one session, before and after `/clear`, are one principal. */
function outranked(tx: Tx, live: ConnectionRow, newcomer: Registration): Refusal | undefined {
  if (!namesOf(tx, live.principal_id).includes(newcomer.principal_id))
    return new Refusal('session_identity_conflict', 'the session is live under another principal');
  if (newcomer.if_free || bellStrength(newcomer.bell) < bellStrength(live.bell))
    return new Refusal('bell_outranked', `the session is held by another process with bell ${live.bell}`);
  return undefined;
}
