// The operator admits a key that he has by another road. Nothing is sent: the other side must do the same, or pair.

import { fingerprint } from '../../crypto/fingerprint.ts';
import { isRefusal, Refusal, type Result } from '../../protocol/errors.ts';
import type { PairingGround } from './ground.ts';

export interface AddAnswer {
  name: string;
  key: string;
  fingerprint: string;
}

export async function add(
  ground: PairingGround,
  request: { name: string; key: string },
): Promise<Result<AddAnswer>> {
  const key = request.key.trim();
  const identity = ground.account.identity();
  if (isRefusal(identity)) return identity;
  if (key === identity.key)
    return new Refusal('invalid_request', 'that is this identity\u2019s own key, which is always self', {
      field: 'key',
    });
  const peer = await ground.policyFile.add({ name: request.name, key });
  if (isRefusal(peer)) return peer;
  await ground.store.write((tx) => tx.pairing.notices.removeOf(key));
  ground.wake.touch();
  return { name: peer.name, key, fingerprint: fingerprint(key) };
}
