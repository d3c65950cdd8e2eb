// What the use cases of pairing are handed, and what they share.

import { fingerprint } from '../../crypto/fingerprint.ts';
import type { Account, Identity, PolicyFile } from '../../ports/account.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Random } from '../../ports/random.ts';
import type { Store, Tx } from '../../ports/store.ts';
import type { Wake } from '../../ports/wake.ts';
import { Fault, isRefusal, Refusal, type Result } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { checkClaimedName } from '../../protocol/names/petname.ts';

export interface PairingGround {
  store: Store;
  clock: Clock;
  random: Random;
  wake: Wake;
  account: Account;
  policyFile: PolicyFile;
  /** Origins of the own relays; none: nothing leaves this machine. */
  relays: readonly string[];
  /** What this account claims to be called, where its owner said so. */
  name?: string | undefined;
  /** Ends all that is on its way to a key that is no peer any more, with the reason `peer_removed`. */
  endOutbox(tx: Tx, peerKey: string): void;
}

/** The own name in pairing records: what its owner says, else the first characters of the key. Refuses one that nobody would take. */
export function claimedName({ name }: Pick<PairingGround, 'name'>, { key }: Identity): Result<string> {
  if (name === undefined) return shortLabel(key);
  return checkClaimedName(name) === undefined
    ? name
    : new Refusal(
        'invalid_request',
        'POSTBELL_NAME must be one line of 1 to 64 characters in Unicode NFC without any that is not seen',
        { field: 'POSTBELL_NAME' },
      );
}

/** Only a label: never an identity. */
const shortLabel = (key: string): string => key.slice(0, 8);

/** The own name in records that go out by themselves: where nobody would take what the owner says, the first characters of the key. */
export function labelOf(ground: Pick<PairingGround, 'name'>, identity: Identity): string {
  const claimed = claimedName(ground, identity);
  return isRefusal(claimed) ? shortLabel(identity.key) : claimed;
}

/** Forgets what has been kept for its time. */
export function expire(tx: Tx, nowMs: number): void {
  tx.pairing.requests.expire(nowMs - limits.pairRequestKeptMs);
  tx.pairing.notices.expire(nowMs - limits.pairRequestKeptMs);
  tx.pairing.asked.expire(nowMs - limits.pairAskedKeptMs);
  tx.pairing.jobs.expire(nowMs);
}

/** Of the pending requests the one that the text names: by its full key or its full fingerprint, and by nothing shorter. */
export function requestNamed(tx: Tx, text: string) {
  const named = text.trim();
  const found = tx.pairing.requests
    .all()
    .find(({ peer_key }) => peer_key === named || fingerprint(peer_key) === named.toLowerCase());
  return (
    found ??
    new Refusal(
      'not_found',
      'no pairing request of that key waits here; give the full key, or the full fingerprint',
    )
  );
}

/** A fault after trust was changed: it says what stands, and what to do. */
export function halfDone(error: unknown, what: string): unknown {
  return error instanceof Fault
    ? new Fault(error.code, `${what}: ${error.message}`, {
        cause: error,
        ...(error.details && { details: error.details }),
      })
    : error;
}
