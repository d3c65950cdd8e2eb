// The one reservation of a session: what keeps two ways of ringing apart. Opened or joined in the transaction whose
// cause it is, before anything rings, so that a crash between the two yields a retry and never silence.

import type { Tx } from '../ports/store.ts';
import { hex } from '../protocol/id.ts';
import { firstStepMs, liesAhead, nextStep, type Reservation, reservationMs } from '../protocol/notices.ts';
import type { Desk } from './desk.ts';

/** Lower-case hex, fresh and random; advisory for its reader. */
function newNotificationId(desk: Pick<Desk, 'random'>): string {
  return hex(desk.random.bytes(6));
}

/** Opens the next reservation of the session over `deliveryIds`, one step up where the last one was not answered. */
export function openReservation(
  tx: Tx,
  desk: Pick<Desk, 'clock' | 'random'>,
  sessionRoot: string,
  deliveryIds: readonly string[],
): string {
  const nowMs = desk.clock.nowMs();
  const step = nextStep(tx.notices.newest(sessionRoot));
  const notification_id = newNotificationId(desk);
  tx.notices.open({
    notification_id,
    session_root: sessionRoot,
    state: 'preparing',
    step,
    rung_at_ms: nowMs,
    expires_at_ms: nowMs + reservationMs(step),
  });
  tx.notices.cover(notification_id, deliveryIds);
  return notification_id;
}

/** Adds deliveries to the current reservation, whose end is then 30 s after now (step kept), or opens one over them. */
export function joinReservation(
  tx: Tx,
  desk: Pick<Desk, 'clock' | 'random'>,
  sessionRoot: string,
  deliveryIds: readonly string[],
): string {
  const nowMs = desk.clock.nowMs();
  const current = currentReservation(tx, sessionRoot, nowMs);
  if (current === undefined) return openReservation(tx, desk, sessionRoot, deliveryIds);
  tx.notices.cover(current.notification_id, deliveryIds);
  tx.notices.setEnd(current.notification_id, nowMs, nowMs + firstStepMs);
  return current.notification_id;
}

/** What `coverTold` changed. */
export interface Told {
  notification_id: string;
  /** Not covered before. */
  added: string[];
  /** Not told before. */
  told: string[];
  /** The reservation as it was; undefined where it was opened. */
  former: Omit<Reservation, 'covered'> | undefined;
}

/**
 * The session's host is told of these right now, by the Stop gate or in mid-turn: a ring, for which nothing is appended. No
 * listener announces them before the reservation ends.
 */
export function coverTold(
  tx: Tx,
  desk: Pick<Desk, 'clock' | 'random'>,
  sessionRoot: string,
  deliveryIds: readonly string[],
): Told | undefined {
  if (deliveryIds.length === 0) return undefined;
  const former = currentReservation(tx, sessionRoot, desk.clock.nowMs());
  const covered = former === undefined ? [] : tx.notices.coverOf(former.notification_id, deliveryIds);
  const before = new Map(covered.map(({ delivery_id, told }) => [delivery_id, told]));
  const notification_id = joinReservation(tx, desk, sessionRoot, deliveryIds);
  tx.notices.markTold(notification_id, deliveryIds);
  return {
    notification_id,
    added: deliveryIds.filter((id) => !before.has(id)),
    told: deliveryIds.filter((id) => before.get(id) !== true),
    former,
  };
}

/** The host could not be told after all: they ring as if nobody had tried, unless a later ring covers them by now. */
export function takeBackTold(
  tx: Tx,
  sessionRoot: string,
  { notification_id, added, told, former }: Told,
): void {
  if (tx.notices.newest(sessionRoot)?.notification_id !== notification_id) return;
  tx.notices.takeBackTold(notification_id, told);
  if (former !== undefined) tx.notices.setEnd(notification_id, former.rung_at_ms, former.expires_at_ms);
  tx.notices.uncover(notification_id, added);
}

/** Without the list of what it covers, which may be long. */
export function currentReservation(
  tx: Tx,
  sessionRoot: string,
  nowMs: number,
): Omit<Reservation, 'covered'> | undefined {
  const newest = tx.notices.newestHolding(sessionRoot);
  return newest !== undefined && liesAhead(newest, nowMs) ? newest : undefined;
}
