// What the store holds of rings: reservations, the rows of listeners, and rings that failed for good.

import type { Reservation } from '../protocol/notices.ts';
import type { HandOffState } from '../protocol/states.ts';

/** Notices that a host did not take. */
export interface Failures {
  /** An ordinary notice replaces the one of its session; others stand beside each other. */
  save(row: FailureRow): void;
  list(sessionRoot: string): FailureRow[];
  count(sessionRoot: string): number;
  byId(sessionRoot: string, id: string): FailureRow | undefined;
  remove(id: string): void;
  /** Ends the saved ordinary notice of the session. */
  clearSlot(sessionRoot: string): void;
}

export interface FailureRow {
  id: string;
  session_root: string;
  kind: 'notice' | 'message' | 'pairing';
  notification_id: string | null;
  message_id: string | null;
  sender: string;
  reason: string;
  text: string;
  recorded_at: string;
}

export interface ListenerRow {
  seq: number;
  notification_id: string;
  text: string;
  /** Whether anything its notice covers still waits that the host was not told of within the reservation `current`. */
  waiting: boolean;
  /** Of an earlier format: no notice, but a whole message in the text. */
  whole: boolean;
  /** Of pairing: it stands for itself. */
  pairing: boolean;
}

export interface Notices {
  newest(sessionRoot: string): Reservation | undefined;
  /** The newest one, if anything that it covers still waits. */
  newestHolding(sessionRoot: string): Omit<Reservation, 'covered'> | undefined;
  byId(notificationId: string): Reservation | undefined;
  open(row: Omit<Reservation, 'covered'>): void;
  cover(notificationId: string, deliveryIds: readonly string[]): void;
  /** The host was told of these by another road than a row: no row of the reservation announces them. */
  markTold(notificationId: string, deliveryIds: readonly string[]): void;
  /** Those of `deliveryIds` that it covers, waiting or not. */
  coverOf(notificationId: string, deliveryIds: readonly string[]): { delivery_id: string; told: boolean }[];
  /** The host was not told of these after all. */
  takeBackTold(notificationId: string, deliveryIds: readonly string[]): void;
  /** No longer covers those of them that no row announced; one that then covers nothing was never opened. */
  uncover(notificationId: string, deliveryIds: readonly string[]): void;
  setEnd(notificationId: string, rungAtMs: number, expiresAtMs: number): void;
  setState(notificationId: string, state: HandOffState): void;
  /** What the host answered to its ring, as JSON text. */
  setReceipt(notificationId: string, receipt: string): void;
  receiptOf(notificationId: string): string | undefined;
  /** The hand-off of this delivery to the session failed: so did its newest reservation there, unless that was rung for. */
  fail(deliveryId: string, sessionIds: readonly string[]): void;
  /** These deliveries of the reservation have been rung for; without them, all that it covers. */
  markRung(notificationId: string, deliveryIds?: readonly string[]): void;
  /** The session's host was handed this delivery whole: rung for, and nothing else of its reservation is. */
  markPushed(deliveryId: string, sessionIds: readonly string[]): void;
  /** When the session was rung last, newest first. */
  rings(sessionRoot: string, count: number): number[];
  /**
   * Of the `count` reservations before this one: how many in a row, the newest first, were written to a channel and
   * brought no intake of anything that they cover.
   */
  unanswered(notificationId: string, count: number): number;
  /** Whether a committed ring of this reservation was for the delivery. */
  isRung(notificationId: string, deliveryId: string): boolean;
  /** State of the newest reservation that covers the delivery; `preparing` until it was rung for. */
  handOffOf(deliveryId: string): HandOffState | undefined;
  /** The session's newest reservation that covers the delivery; mail to a principal has one in each of its sessions. */
  covering(deliveryId: string, sessionIds: readonly string[]): string | undefined;
}

/** Rows that the listener of a session prints, and how far it has. */
export interface Listener {
  append(row: {
    session_id: string;
    notification_id: string;
    text: string;
    created_at: string;
    kind?: 'pairing';
  }): void;
  /** Rows of any of `ids` after `position`, oldest first. */
  rows(ids: readonly string[], position: number, count: number, current?: string): ListenerRow[];
  cursor(sessionRoot: string): number;
  setCursor(sessionRoot: string, position: number, prints: readonly number[]): void;
  /** When the session's listeners printed, newest first. */
  prints(sessionRoot: string): number[];
  /** Removes rows of `ids` up to `position` that are older than `before` and whose records are all consumed. */
  prune(ids: readonly string[], position: number, before: string): void;
}
