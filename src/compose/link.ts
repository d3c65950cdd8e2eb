// The link of this account, with the clients of its relays: what a router runs where the owner named relays.

import { suitesKnown } from '../crypto/seal-suites.ts';
import { announceRoute } from '../peers/pairing/announce.ts';
import { takeControl } from '../peers/pairing/take.ts';
import { quotaOf } from '../platform/environment.ts';
import type { Log } from '../ports/log.ts';
import { isRefusal } from '../protocol/errors.ts';
import type { Message } from '../protocol/message.ts';
import { Link } from '../router/link/link.ts';
import { accountIn } from './account.ts';
import { pairingGround } from './pairing.ts';
import { relayClients } from './relays.ts';
import type { Ground } from './store.ts';

/** Undefined where nothing leaves this machine. A malformed list of relays is said, and is none. */
export function linkOf(
  ground: Pick<Ground, 'environment' | 'store' | 'clock' | 'random' | 'wake'>,
  log: Log,
  ringFor: (message: Message) => void,
): Link | undefined {
  const opened = pairingGround(ground);
  if (isRefusal(opened)) {
    log.warn('no link', { why: opened.message });
    return undefined;
  }
  // A router makes the list of peers before anything else.
  const account = accountIn(ground.environment, { policyExists: true });
  const pairing = { ...opened, account };
  const { relays } = pairing;
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
    announce: () => announceRoute(pairing, suitesKnown),
    ringFor,
  });
}
