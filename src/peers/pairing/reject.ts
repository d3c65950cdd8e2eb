// The operator does not admit a stranger: the request goes, and nothing is sent.

import { isRefusal, type Result } from '../../protocol/errors.ts';
import { expire, type PairingGround, requestNamed } from './ground.ts';

export interface RejectAnswer {
  rejected: string;
}

/** @param key full key or full fingerprint */
export function reject(ground: PairingGround, key: string): Promise<Result<RejectAnswer>> {
  return ground.store.write((tx) => {
    expire(tx, ground.clock.nowMs());
    const pending = requestNamed(tx, key);
    if (isRefusal(pending)) return pending;
    const { peer_key, device } = pending;
    tx.pairing.requests.remove(peer_key);
    tx.pairing.notices.removeOf(peer_key);
    // Its room, where accepting it was cut off.
    const job = tx.pairing.jobs.of('pair_accept', peer_key, device);
    if (job?.next_ms === null) tx.pairing.jobs.remove(job.seq);
    return { rejected: peer_key };
  });
}
