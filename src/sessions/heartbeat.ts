// A heartbeat renews the lease in place; it appends nothing and touches nothing.

import { Refusal, type Result } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import { type ConnectionKey, isLive } from '../protocol/session.ts';
import type { Switchboard } from './switchboard.ts';

export async function heartbeat(
  board: Pick<Switchboard, 'store' | 'clock'>,
  request: ConnectionKey & { work_summary?: string; lease_ms?: number },
): Promise<Result<{ generation: number; lease_ms: number }>> {
  const lease_ms = request.lease_ms ?? limits.leaseMsDefault;
  return board.store.write((tx) => {
    const nowMs = board.clock.nowMs();
    const connection = tx.sessions.connection(request.connection_id);
    const current = connection?.generation === request.generation && isLive(connection, nowMs);
    if (!current) return new Refusal('stale_generation', 'this connection has expired or was replaced');
    tx.sessions.renew(request.connection_id, nowMs + lease_ms, request.work_summary);
    return { generation: request.generation, lease_ms };
  });
}
