// The trust gate: its steps in their order, of which the first that fails decides, and what is fresh.

import { limits } from './limits.ts';
import type { RecordType, WireRecord } from './wire/record.ts';

export const gateSteps = [
  /** Size, framing, and opening the sealed item with the own key. */
  'item',
  'signature',
  /** It is for this identity. */
  'addressee',
  /** From a peer or the own key; from anybody where it asks to pair. */
  'authorised',
  'fresh',
  'replay',
  'fields',
  /** A receipt for what was not sent to its signer. */
  'receipt',
] as const;

export type GateStep = (typeof gateSteps)[number];

/** Both bounds inclusive. */
export const isFresh = (timeMs: number, nowMs: number): boolean =>
  timeMs - nowMs <= limits.signedAheadMs && nowMs - timeMs <= limits.signedForMs;

/** By which queue it came: that for peers, or the door, which strangers know. */
export type Via = 'device' | 'door';

/** What a sender that is no peer may say, and what the door takes. */
export const isPairing = (type: RecordType): boolean => type === 'pair_request' || type === 'pair_accept';

/** Of year 10,000: from here on a time has no text of the form in which times are stored and compared. */
const instantEndMs = 253_402_300_800_000;

/** Whether every time in the fields, which are the sender's word, can be written as all times are. */
export function hasInstants(record: WireRecord): boolean {
  if (record.type === 'message') return record.fields.expires_at_ms < instantEndMs;
  return record.type !== 'receipt' || record.fields.facts.every(({ time_ms }) => time_ms < instantEndMs);
}
