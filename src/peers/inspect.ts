// Steps 0 to 3 of the trust gate: what can be told of one item without the store. Fields are not looked at before the sender is known
// to be allowed to say anything.

import { verifyRecord } from '../crypto/record.ts';
import { openItem } from '../crypto/sealed-item.ts';
import type { Identity } from '../ports/account.ts';
import type { GateStep, Via } from '../protocol/gate.ts';
import { isPairing } from '../protocol/gate.ts';
import type { Policy } from '../protocol/policy.ts';
import { type ReadHeader, readHeader } from '../protocol/wire/header.ts';

/** One item as a queue of this account held it. */
export interface Arrival {
  body: Uint8Array;
  via: Via;
  /** The device or door id of that queue: what it was sealed for. */
  queueId: string;
}

export interface Inspected {
  record: Uint8Array;
  header: ReadHeader['header'];
  via: Via;
  /** Whether the key is a peer's or the own; a stranger may only ask to pair. */
  isPeer: boolean;
}

export interface Trust {
  identity: Identity;
  policy: Policy;
  /** Whether this account asked that key to pair, and waits for its answer. */
  asked(key: string): boolean;
}

/** The record with its verified header, or the step that refuses it. */
export function inspect({ body, via, queueId }: Arrival, trust: Trust): Inspected | GateStep {
  const { identity } = trust;
  const record = openItem({ item: body, seed: identity.seed, queueId });
  if (typeof record === 'string') return 'item';
  const read = readHeader(record);
  if (typeof read === 'string') return 'item';
  if (!verifyRecord(record)) return 'signature';
  const { header } = read;
  if (header.to !== identity.key) return 'addressee';
  const isPeer = header.from === identity.key || trust.policy.of(header.from) !== undefined;
  const inspected = { record, header, via, isPeer };
  return isAllowed(inspected, trust) ? inspected : 'authorised';
}

/** The door takes pairing records alone; a stranger may ask through it, and answer what it was asked. */
function isAllowed({ header, via, isPeer }: Inspected, trust: Trust): boolean {
  if (!isPairing(header.type)) return isPeer && via === 'device';
  if (isPeer) return true;
  return header.type === 'pair_request' ? via === 'door' : trust.asked(header.from);
}
