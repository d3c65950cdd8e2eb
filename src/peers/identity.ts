// Who this account is to others, as its owner gives it to them.

import { fingerprint } from '../crypto/fingerprint.ts';
import type { IdentityFile } from '../ports/account.ts';
import type { Random } from '../ports/random.ts';
import { formatAddress } from '../protocol/address.ts';
import { isRefusal, type Result } from '../protocol/errors.ts';
import type { PairingGround } from './pairing/ground.ts';
import { ownPlace, replaceQueue } from './place.ts';

export interface IdentityAnswer {
  key: string;
  fingerprint: string;
  /** Of this data directory. */
  device: string;
  door: string;
  relays: readonly string[];
  /** What others ask to pair by; null where there is no relay to reach it at. */
  address: string | null;
}

/** @param newDoor replaces the door: the address given before leads nowhere from then on */
export async function showIdentity(
  ground: PairingGround,
  { newDoor }: { newDoor: boolean },
): Promise<Result<IdentityAnswer>> {
  const { account, clock, random, relays, store, wake } = ground;
  const identity = account.identity();
  if (isRefusal(identity)) return identity;
  const { key } = identity;
  const at = new Date(clock.nowMs()).toISOString();
  const known = newDoor ? undefined : store.read((tx) => tx.places.get());
  const place =
    known ??
    (await store.write((tx) =>
      newDoor ? replaceQueue(tx, { random, key, of: 'door', at }) : ownPlace(tx, random),
    ));
  if (known === undefined) wake.touch();
  return {
    key,
    fingerprint: fingerprint(key),
    ...place,
    relays,
    address: relays.length === 0 ? null : formatAddress({ key, door: place.door, relays }),
  };
}

export interface CreatedIdentity {
  key: string;
  fingerprint: string;
  path: string;
}

export function createIdentity(
  ports: { file: IdentityFile; random: Random },
  options: { replace: boolean },
): Result<CreatedIdentity> {
  const created = ports.file.create(ports.random.bytes(32), options);
  return isRefusal(created) ? created : { ...created, fingerprint: fingerprint(created.key) };
}
