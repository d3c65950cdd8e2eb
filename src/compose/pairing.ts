// The account with its files, and what the use cases of pairing are handed.

import { endForPeer } from '../peers/carry.ts';
import { type PairingCalls, pairingCalls } from '../peers/pairing/calls.ts';
import type { PairingGround } from '../peers/pairing/ground.ts';
import { setting } from '../platform/environment.ts';
import { policyFile } from '../platform/paths.ts';
import { policyFileAt } from '../platform/policy-file.ts';
import { relaysOf } from '../platform/relays.ts';
import { isRefusal, type Result } from '../protocol/errors.ts';
import { takeFile } from '../store/lock.ts';
import { accountIn } from './account.ts';
import type { Ground } from './store.ts';

/** As `pairingGround`. */
export function callsOf(ground: Parameters<typeof pairingGround>[0]): Result<PairingCalls> {
  const pairing = pairingGround(ground);
  return isRefusal(pairing) ? pairing : pairingCalls(pairing);
}

/** Refused where the owner's list of relays is malformed. */
export function pairingGround(
  ground: Pick<Ground, 'environment' | 'store' | 'clock' | 'random' | 'wake'>,
): Result<PairingGround> {
  const { environment, store, clock, random, wake } = ground;
  const relays = relaysOf(environment);
  if (isRefusal(relays)) return relays;
  return {
    store,
    clock,
    random,
    wake,
    account: accountIn(environment),
    policyFile: policyFileAt(policyFile(environment), { clock, takeLock: takeFile }),
    relays,
    name: setting(environment, 'POSTBELL_NAME'),
    endOutbox: (tx, peerKey) => void endForPeer(tx, ground, peerKey),
  };
}
