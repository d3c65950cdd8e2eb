// A connection ends: its unfinished attempts end with it, and its presence is a fact.

import { timestamp } from '../mailbox/desk.ts';
import type { ConnectionRow } from '../ports/presence.ts';
import type { Tx } from '../ports/store.ts';
import type { DisconnectReason } from '../protocol/session.ts';
import { recordPatiently } from './record.ts';
import type { Switchboard } from './switchboard.ts';

type Ports = Pick<Switchboard, 'store' | 'clock' | 'wake'>;

export async function disconnect(
  board: Ports,
  connectionId: string,
  reason: DisconnectReason,
): Promise<void> {
  await recordPatiently(board, () =>
    board.store.write((tx) => endConnection(tx, board, connectionId, reason)),
  );
  board.wake.touch();
}

/** Connections that an earlier run of the router left open. */
export async function closeLeftOpen(board: Ports & Pick<Switchboard, 'instance'>): Promise<void> {
  await board.store.write((tx) => {
    for (const row of tx.sessions.open(board.instance))
      endConnection(tx, board, row.connection_id, 'router_restart');
  });
}

/** Connections whose lease has run out. */
export async function expireLeases(board: Ports & Pick<Switchboard, 'leases'>): Promise<string[]> {
  const nowMs = board.clock.nowMs();
  const isOver = (row: ConnectionRow | undefined): boolean =>
    (board.leases.of(row)?.lease_expires_at_ms ?? 0) <= nowMs;
  const expired = board.store.read((tx) => tx.sessions.open().filter(isOver));
  if (expired.length === 0) return [];
  await board.store.write((tx) => {
    for (const row of expired)
      if (isOver(tx.sessions.connection(row.connection_id)))
        endConnection(tx, board, row.connection_id, 'lease_expired');
  });
  board.wake.touch();
  return expired.map((row) => row.connection_id);
}

export function endConnection(
  tx: Tx,
  board: Pick<Switchboard, 'clock'>,
  id: string,
  reason: DisconnectReason,
): void {
  const at = timestamp(board);
  const replaced = reason === 'superseded' || reason === 'lease_expired';
  const sessionIds = tx.identity.chain(tx.sessions.connection(id)?.session_id ?? '');
  for (const attempt of tx.attempts.unfinishedOf(id)) {
    tx.attempts.finish(
      attempt.attempt_id,
      replaced ? 'stale_generation' : 'adapter_failed',
      replaced ? 'stale_generation' : 'adapter_disconnected',
      at,
    );
    tx.notices.fail(attempt.delivery_id, sessionIds);
  }
  tx.sessions.disconnect(id, reason, at);
}
