// Peers are told when the place where this account is reached is another one than they were told last.

import { isRefusal, type Result } from '../../protocol/errors.ts';
import { putRoutes } from '../control.ts';
import { ownPlace } from '../place.ts';
import type { PairingGround } from './ground.ts';

/** @returns whether there was anything to tell */
export async function announceRoute(
  ground: Pick<PairingGround, 'store' | 'clock' | 'random' | 'wake' | 'account' | 'relays'>,
  suites: readonly number[],
): Promise<Result<boolean>> {
  const { account, clock, random, relays, store } = ground;
  const identity = account.identity();
  if (isRefusal(identity)) return identity;
  const policy = account.policy();
  if (isRefusal(policy)) return policy;
  const told = await store.write((tx) => {
    const { device } = ownPlace(tx, random);
    const route = JSON.stringify({ key: identity.key, device, relays, suites });
    const before = tx.pairing.announced();
    if (before === route) return false;
    tx.pairing.announce(route);
    // Whoever pairs is told in the record of that itself.
    if (before === undefined) return false;
    putRoutes(tx, { random, nowMs: clock.nowMs() }, [...policy.peers.map(({ key }) => key), identity.key]);
    return true;
  });
  if (told) ground.wake.touch();
  return told;
}
