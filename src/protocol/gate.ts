// The trust gate: its steps in their order, of which the first that fails decides, and what is fresh.

import { limits } from './limits.ts';
import type { RecordType } from './wire/record.ts';

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
