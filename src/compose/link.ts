// The link of this account, with the clients of its relays: what a router runs where the owner named relays.

import { relayClient } from '../carriers/postbell/client.ts';
import { takeControl } from '../peers/pairing/take.ts';
import { quotaOf } from '../platform/environment.ts';
import type { Clock } from '../ports/clock.ts';
import type { Log } from '../ports/log.ts';
import type { Random } from '../ports/random.ts';
import type { Relay, Signer } from '../ports/relay.ts';
import { isRefusal } from '../protocol/errors.ts';
import type { Message } from '../protocol/message.ts';
import { Link } from '../router/link/link.ts';
import { pairingGround } from './pairing.ts';
import type { Ground } from './store.ts';

/** Clients of relays: those that the owner listed may lie anywhere, others only in public. */
export const relayClients =
  (ground: { clock: Clock; random: Random }, listed: readonly string[]) =>
  (origin: string, signer: Signer): Relay =>
    relayClient({ ...ground, origin, signer, mayReach: listed.includes(origin) ? 'anywhere' : 'public' });

/** Undefined where nothing leaves this machine. A malformed list of relays is said, and is none. */
export function linkOf(
  ground: Pick<Ground, 'environment' | 'store' | 'clock' | 'random' | 'wake'>,
  log: Log,
  ringFor: (message: Message) => void,
): Link | undefined {
  const pairing = pairingGround(ground);
  if (isRefusal(pairing)) {
    log.warn('no link', { why: pairing.message });
    return undefined;
  }
  const { account, relays } = pairing;
  if (relays.length === 0) return undefined;
  const quota = quotaOf(ground.environment);
  return new Link({
    ...ground,
    ...(quota !== undefined && { quota }),
    account,
    log,
    relays,
    client: relayClients(ground, relays),
    control: (record, via) => takeControl(pairing, record, via),
    ringFor,
  });
}
