// Who asks to be admitted, as the operator decides by it.

import { fingerprint, pairCode } from '../../crypto/fingerprint.ts';
import type { Tx } from '../../ports/store.ts';
import { isRefusal, type Result } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { foldPetname, ownName } from '../../protocol/names/petname.ts';
import { resembles } from '../../protocol/names/resemblance.ts';
import type { PairingGround } from './ground.ts';

export interface ShownRequest {
  /** What it calls itself: data of a stranger. */
  claimed_name: string;
  /** The petname of another key that this could be taken for. */
  resembles?: string;
  key: string;
  fingerprint: string;
  /** The same at both sides. */
  pair_code: string;
  arrived_at: string;
}

/** @param byOperator a person looks: sessions are not rung for these any more */
export async function requests(
  ground: PairingGround,
  { byOperator }: { byOperator: boolean },
): Promise<Result<{ requests: ShownRequest[] }>> {
  const { account, clock, store } = ground;
  const identity = account.identity();
  if (isRefusal(identity)) return identity;
  const policy = account.policy();
  if (isRefusal(policy)) return policy;
  const current = (tx: Tx) =>
    tx.pairing.requests
      .all()
      .filter(({ arrived_ms }) => clock.nowMs() - arrived_ms <= limits.pairRequestKeptMs);
  const rows = store.read(current);
  const unlisted = rows.filter(({ listed }) => !listed).map(({ peer_key }) => peer_key);
  if (byOperator && unlisted.length > 0) await store.write((tx) => tx.pairing.requests.markListed(unlisted));
  const names = [...policy.peers.map(({ name }) => name), ownName];
  const likened = (claimed: string): string | undefined =>
    names.find((name) => foldPetname(name) === foldPetname(claimed)) ??
    names.find((name) => resembles(claimed, name));
  return {
    requests: rows.map(({ name, peer_key, arrived_ms }) => {
      const like = likened(name);
      return {
        claimed_name: name,
        ...(like !== undefined && { resembles: like }),
        key: peer_key,
        fingerprint: fingerprint(peer_key),
        pair_code: pairCode(identity.key, peer_key),
        arrived_at: new Date(arrived_ms).toISOString(),
      };
    }),
  };
}
