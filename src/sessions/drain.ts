// What waited for a principal while none of its sessions could be handed it, after a registration: in the order of
// arrival, up to what was there when it began. A delivery to an exact session is never among it.

import type { NotifyAnswer } from '../ports/router.ts';
import type { Tx } from '../ports/store.ts';
import { limits } from '../protocol/limits.ts';
import { isLive } from '../protocol/session.ts';
import { namesOf } from './principals.ts';
import type { Switchboard } from './switchboard.ts';

type Ports = Pick<Switchboard, 'store' | 'clock'>;
type Row = ReturnType<Tx['waiting']['undelivered']>[number];

export interface Drain {
  connectionId: string;
  project: string;
  /** Nothing before it is handed to the first session of a principal. */
  after: number;
  through: number;
}

/** What a registration has to drain; undefined where nothing waits, or it has no bell. */
export function planDrain(board: Ports, connectionId: string): Drain | undefined {
  return board.store.read((tx) => {
    const connection = tx.sessions.connection(connectionId);
    if (connection === undefined || connection.bell === 'none') return undefined;
    const { project, principal_id } = connection;
    const after = tx.sessions.checkpoint(project, principal_id) ?? Number.MAX_SAFE_INTEGER;
    const drain = { connectionId, project, after, through: tx.messages.lastEvent(project) };
    return batch(tx, board, drain, 1).length > 0 ? drain : undefined;
  });
}

/**
 * One round: what a host refuses now is left to its next registration, the sender's retry and the notice schedule.
 * @param deliver hands one delivery over, or joins the hand-off that is under way
 */
export async function drain(
  board: Ports,
  plan: Drain,
  deliver: (project: string, deliveryId: string) => Promise<NotifyAnswer>,
): Promise<void> {
  let { after } = plan;
  for (;;) {
    const rows = board.store.read((tx) => batch(tx, board, { ...plan, after }, limits.drainBatch));
    for (const { delivery_id, event_seq } of rows) {
      if (bellOf(board, plan.connectionId) === undefined) return;
      const answer = await deliver(plan.project, delivery_id);
      // The first notice rings for all that waits: the rest is covered.
      if (answer.reason === 'covered' && bellOf(board, plan.connectionId) !== 'channel') return;
      after = event_seq;
    }
    if (rows.length < limits.drainBatch) return;
  }
}

function batch(tx: Tx, board: Ports, plan: Drain, count: number): Row[] {
  const connection = tx.sessions.connection(plan.connectionId);
  if (connection === undefined || !isLive(connection, board.clock.nowMs())) return [];
  return tx.waiting.undelivered({
    project: plan.project,
    principals: namesOf(tx, connection.principal_id),
    sessions: tx.identity.chain(connection.session_id),
    after: plan.after,
    through: plan.through,
    count,
  });
}

/** Of the connection while it is live. */
function bellOf(board: Ports, connectionId: string) {
  const connection = board.store.read((tx) => tx.sessions.connection(connectionId));
  return isLive(connection, board.clock.nowMs()) ? connection?.bell : undefined;
}
