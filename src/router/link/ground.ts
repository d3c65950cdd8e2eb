// What the loops of the link share.

import { signRecord } from '../../crypto/record.ts';
import { sealItem } from '../../crypto/sealed-item.ts';
import type { Desk } from '../../mailbox/desk.ts';
import type { Account, Identity } from '../../ports/account.ts';
import type { Log } from '../../ports/log.ts';
import type { Place } from '../../ports/peers.ts';
import type { Relay, RelayFailure, Signer } from '../../ports/relay.ts';
import { uuidText } from '../../protocol/wire/bytes.ts';
import type { WireRecord } from '../../protocol/wire/record.ts';

export interface LinkGround extends Pick<Desk, 'store' | 'clock' | 'random' | 'wake' | 'quota'> {
  account: Account;
  log: Log;
  /** Origins of the own relays, as the operator listed them. */
  relays: readonly string[];
  /** The client of a relay; of one that the operator did not list, which may only be a public one. */
  client(origin: string, signer: Signer): Relay;
}

/** Who this machine is while the link runs; a new identity or place begins it anew. */
export interface Self {
  identity: Identity;
  place: Place;
}

export const queueOf = (key: string, id: string): string => `${key}.${id}`;

export const freshId = ({ random }: Pick<LinkGround, 'random'>): string => uuidText(random.bytes(16));

/** The record, signed and sealed for one queue. */
export const sealedFor = (
  { random }: Pick<LinkGround, 'random'>,
  record: WireRecord & { to: string },
  identity: Identity,
  queue: { id: string; suite: number },
): Uint8Array =>
  sealItem({
    record: signRecord(record, identity),
    to: record.to,
    queueId: queue.id,
    ephemeral: random.bytes(32),
    suite: queue.suite,
  });

/** 0 to 1. */
export const jitter = ({ random }: Pick<LinkGround, 'random'>): number =>
  (random.bytes(1)[0] as number) / 255;

export const isFailure = (error: unknown): error is RelayFailure => (error as Error)?.name === 'RelayFailure';
