// A heartbeat renews the lease in place; it appends nothing and touches nothing. It is answered once it is written, or,
// where the store is locked, from what is known here: the write follows.

import { atMost } from '../mailbox/patience.ts';
import { Refusal, type Result } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import { type ConnectionKey, isLive } from '../protocol/session.ts';
import { recordPatiently } from './record.ts';
import type { Switchboard } from './switchboard.ts';

const patienceMs = 100;

/** @param onFault told where a promised lease could not be written in the end */
export async function heartbeat(
  board: Pick<Switchboard, 'store' | 'clock' | 'leases'>,
  request: ConnectionKey & { work_summary?: string; lease_ms?: number },
  onFault: (error: unknown) => void = () => {},
): Promise<Result<{ generation: number; lease_ms: number }>> {
  const lease_ms = request.lease_ms ?? limits.leaseMsDefault;
  const { connection_id, generation, work_summary } = request;
  const { store, clock, leases } = board;
  const connection = leases.of(store.read((tx) => tx.sessions.connection(connection_id)));
  if (connection?.generation !== generation || !isLive(connection, clock.nowMs()))
    return new Refusal('stale_generation', 'this connection has expired or was replaced');
  leases.promise(connection_id, clock.nowMs() + lease_ms, work_summary);
  const write = recordPatiently(board, () =>
    store.write((tx) => {
      const latest = leases.latest(connection_id);
      if (latest !== undefined) tx.sessions.renew(connection_id, latest.untilMs, latest.summary);
      return latest;
    }),
  );
  await atMost(
    clock,
    write.then((latest) => leases.written(connection_id, latest), onFault),
    patienceMs,
  );
  return { generation, lease_ms };
}
