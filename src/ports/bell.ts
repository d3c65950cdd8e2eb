// A bell is one adapter for one host: the only code that talks to that host in order to ring. It holds no durable state,
// writes no receipt, and never rings again by itself.

import type { CoveredMessage } from '../protocol/delivery.ts';
import type { ErrorCode } from '../protocol/errors.ts';
import type { Json } from '../protocol/json.ts';
import type { AdapterKind, Bell as BellName, HostKind } from '../protocol/session.ts';

/** What an adapter can do. What it cannot have it says here, and the conformance suite holds it to that. */
export interface BellDescription {
  bell: BellName;
  adapterKind: AdapterKind;
  hostKind: HostKind;
  contents: readonly ('notice' | 'full')[];
  noticeBytesMax: number;
  /** Of the text of a whole message; 0 where `contents` has no `full`. */
  fullBytesMax: number;
  /** Hand-offs that may be unanswered at once. One means that a busy host is waited for. */
  pendingMax: number;
  /** After which a ring's outcome is unknown. */
  ringTimeoutMs: number;
  /** Tries within one ring, and the time between them. */
  attemptsMax: number;
  retryGapMs: number;
}

/** `busy`: a turn runs; `unarmed`: a ring now would not be noticed; `refused`: it is certain that it cannot ring. */
export type BellState =
  | { state: 'ready' | 'busy' | 'unarmed' | 'gone' }
  | { state: 'refused'; reason: string };

export interface MessageLabels {
  sender: string;
  msg_id: string;
  task_id?: string;
  status?: string;
  in_reply_to?: string;
}

export interface RingItem {
  content: 'notice' | 'full';
  notification_id: string;
  /** Rendered by the one renderer of its kind; within the adapter's limit. */
  text: string;
  /** What it rings for, in order of arrival. */
  covered: readonly CoveredMessage[];
  /** The session that is rung. */
  session_id: string;
  /** Of the router's hand-off; absent where the session's own notifier rings. */
  attempt_id?: string;
  /** Of a whole message, for a host that shows such things beside the text; absent of a notice. Words of its sender. */
  about?: MessageLabels;
  /** Of a channel: how many reservations in a row before this one were written to it and brought no intake. */
  unanswered?: number;
  /** Of pairing, and about no mail: no reservation stands behind it. */
  pairing?: true;
}

export type RingOutcome =
  /** On the evidence that the adapter kind stands for, and no more. */
  | { outcome: 'accepted'; content: 'notice' | 'full'; receipt: Json }
  /** `permanent`: repeating cannot help. */
  | { outcome: 'rejected'; code: ErrorCode; permanent: boolean }
  /** The host may or may not have taken it. `stale_generation`: nothing was rung, since the ring came too late to count. */
  | { outcome: 'unknown'; code: ErrorCode };

export interface Bell {
  describe(): BellDescription;
  /** Cheap: rings nothing and changes nothing. */
  state(): BellState;
  /**
   * A throw means a defect or a fault of the store, never an outcome. After `abort` the caller waits no more; what is known
   * later is answered all the same.
   */
  ring(item: RingItem, abort: AbortSignal): Promise<RingOutcome>;
  /** Rings no more and lets go of the host. */
  close(reason: string): void;
}
