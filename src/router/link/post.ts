// What every loop of the link does to say something to a machine of a peer: find its queue, the relays that it is asked at and a way
// to seal for it, and post there.

import { pickSuite } from '../../crypto/seal-suites.ts';
import { relaysOf } from '../../peers/route.ts';
import type { Relay, RelayFailure } from '../../ports/relay.ts';
import { isFailure, type LinkGround, queueOf } from './ground.ts';

/** A relay keeps nothing for longer, as long as what is signed counts. */
export const itemTtlS = 86_400;

export interface Destination {
  peer_key: string;
  device: string;
}

export interface Way {
  queue: string;
  origins: readonly string[];
  /** Undefined where this release knows none that the machine knows. */
  suite: number | undefined;
}

export const wayTo = ({ store, relays }: LinkGround, { peer_key, device }: Destination): Way =>
  store.read((tx) => ({
    queue: queueOf(peer_key, device),
    origins: relaysOf(tx, peer_key, device, relays),
    suite: pickSuite(tx.devices.get(peer_key, device)?.suites ?? [1]),
  }));

/** @returns why the relay did not take it; undefined where it did */
export async function postAt(
  relay: Relay,
  queue: string,
  item: Parameters<Relay['post']>[1],
  signal: AbortSignal,
): Promise<RelayFailure | undefined> {
  try {
    await relay.post(queue, item, signal);
    return undefined;
  } catch (error) {
    if (!isFailure(error)) throw error;
    return error;
  }
}

/**
 * What relays that were asked at once answered, by the first one that took it; or all of them where none does: one that stalls delays
 * nobody.
 */
export function firstTook(
  asked: readonly Promise<RelayFailure | undefined>[],
): Promise<'took' | RelayFailure[]> {
  return new Promise((resolve, reject) => {
    const failures: RelayFailure[] = [];
    if (asked.length === 0) resolve(failures);
    for (const one of asked)
      one.then((failure) => {
        if (failure === undefined) return resolve('took');
        failures.push(failure);
        if (failures.length === asked.length) resolve(failures);
      }, reject);
  });
}
