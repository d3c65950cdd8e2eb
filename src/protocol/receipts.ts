// Facts: append-only statements that something happened. No fact implies another.

import type { Json } from './json.ts';
import type { DeliveryState } from './states.ts';

export type MessageReceiptKind = 'intake' | 'ack' | 'disposition' | 'activation' | 'host_activation';

export const dispositions = ['accepted', 'rejected', 'completed', 'cancelled', 'deferred'] as const;
export const activations = ['woken', 'manual_resume_required', 'unsupported', 'failed'] as const;

/** A receipt recorded by the recipient's own call; `host_activation` by the router alone. */
export interface MessageReceipt {
  receipt_id: string;
  receipt_kind: MessageReceiptKind;
  value: string;
  source: 'receipt';
  actor: string;
  idempotency_key: string;
  caller_session?: string;
  host_accept_id?: string;
  detail?: string;
  recorded_at: string;
}

/** What a peer's store recorded of a message that was sent to it, signed by its key: no word on what its model understood. */
export interface PeerFact {
  receipt_id: string;
  receipt_kind: 'stored' | 'intake' | 'ack' | 'disposition' | 'refused';
  value: string;
  source: 'peer';
  /** `peer`: whoever holds the key. */
  actor: 'peer';
  /** The verified key. */
  peer_key: string;
  /** When the peer recorded it, by its own clock. */
  peer_recorded_at: string;
  /** When it came here. */
  recorded_at: string;
}

/** What this machine did with a message to a peer, or why it stopped trying. */
export interface OutboxFact {
  receipt_id: string;
  receipt_kind: 'relay_accept' | 'expired' | 'refused';
  /** The origin of the relay; or why it ended. */
  value: string;
  source: 'outbox';
  actor: 'postbell-router';
  recorded_at: string;
}

export type OutboxEnd = 'discarded' | 'peer_removed' | 'relay_refused';

/** The time after which the message waits no more; seen when receipts are read. */
export interface ExpiredFact {
  receipt_kind: 'expired';
  value: 'expired';
  source: 'message';
  actor: 'postbell';
  recorded_at: string;
}

export type AttemptState =
  | 'started'
  | 'adapter_returned'
  | 'adapter_rejected'
  | 'adapter_failed'
  | 'stale_generation';

/** One try of the router to hand a delivery to a session. */
export interface AttemptFact {
  receipt_kind: 'attempt';
  value: AttemptState;
  source: 'attempt';
  actor: 'postbell-router';
  attempt_id: string;
  attempt_number: number;
  connection_id: string;
  session_id: string;
  generation: number;
  failure_code?: string;
  finished_at?: string;
  recorded_at: string;
}

/** A host took text or a notice; it proves neither reading nor acceptance of the work. */
export interface HostAcceptFact {
  receipt_kind: 'host_accept';
  value: 'full' | 'notice';
  source: 'host_accept';
  actor: 'postbell-router';
  host_accept_id: string;
  attempt_id: string;
  session_id: string;
  adapter_kind: string;
  receipt: Json;
  recorded_at: string;
  delivery_state: HostAcceptObservation;
}

/** Computed when receipts are read, never stored. */
export interface HostAcceptObservation {
  observed_at: string;
  intake: 'recorded' | 'pending';
  target_session: 'live' | 'not_live' | 'unknown' | 'not_applicable';
  session?: string;
}

export type Fact = MessageReceipt | AttemptFact | HostAcceptFact | ExpiredFact | PeerFact | OutboxFact;

export type FactKind = MessageReceiptKind | (PeerFact | OutboxFact)['receipt_kind'];

export interface ReceiptsAnswer {
  project: string;
  recipient: string;
  message_id: string;
  delivery_state: DeliveryState;
  receipts: Fact[];
}

const rank = { attempt: 0, host_accept: 1, receipt: 2, peer: 3, outbox: 3, message: 4 } as const;

/** Time first; at equal times attempt, host acceptance, message receipt, what came over the link, expiry; then the given (insertion) order. */
export function inReceiptOrder(facts: readonly Fact[]): Fact[] {
  return [...facts].sort((a, b) =>
    a.recorded_at < b.recorded_at ? -1 : a.recorded_at > b.recorded_at ? 1 : rank[a.source] - rank[b.source],
  );
}
