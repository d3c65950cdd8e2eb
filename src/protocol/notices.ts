// When a session is rung, as pure decisions over its one reservation (inbox.md, section 4), and the one text of a
// notice. A notice names counts and the tools to call; never a body, a sender's free text or a task.

import type { HandOffState } from './states.ts';

const stepMs = [30_000, 60_000, 120_000, 240_000, 300_000] as const;
export const firstStepMs = stepMs[0];
const longestStepMs = stepMs[4];

/** How long a reservation of this step lasts. */
export function reservationMs(step: number): number {
  return stepMs[Math.min(step, stepMs.length - 1)] as number;
}

/** The newest reservation of a session; it may have ended. */
export interface Reservation {
  notification_id: string;
  session_root: string;
  state: HandOffState;
  step: number;
  rung_at_ms: number;
  expires_at_ms: number;
  /** Deliveries it covers that still wait. */
  covered: readonly string[];
}

/** A delivery that waits and is worth a wake-up. */
export interface WorthyDelivery {
  delivery_id: string;
  created_at_ms: number;
}

/** Whether the reservation still holds rings back: its end lies ahead and something it covers waits. */
export function isCurrent(reservation: Reservation | undefined, nowMs: number): boolean {
  return reservation !== undefined && reservation.covered.length > 0 && liesAhead(reservation, nowMs);
}

/** Whether the ring for a current reservation is still to be made. */
export function isPreparing(reservation: Reservation | undefined, nowMs: number): boolean {
  return reservation?.state === 'preparing' && isCurrent(reservation, nowMs);
}

/** A clock that was set back cannot make it longer than any reservation is. */
export function liesAhead({ expires_at_ms }: Pick<Reservation, 'expires_at_ms'>, nowMs: number): boolean {
  const left = expires_at_ms - nowMs;
  return left > 0 && left <= longestStepMs;
}

/** The step of the reservation that follows: the first after a release, else one longer. */
export function nextStep(previous: Reservation | undefined): number {
  return previous === undefined || previous.covered.length === 0
    ? 0
    : Math.min(previous.step + 1, stepMs.length - 1);
}

export type NotifierDecision = { act: 'ring' } | { act: 'wait'; untilMs: number } | { act: 'idle' };

/**
 * What the notifier of a session does now. A new delivery is left to the router for `graceMs` where a connection
 * is live; one that no reservation covers brings the end of the current one forward to 30 s after the last ring.
 */
export function decideRing(input: {
  nowMs: number;
  reservation: Reservation | undefined;
  worthy: readonly WorthyDelivery[];
  connectionLive: boolean;
  graceMs: number;
}): NotifierDecision {
  const { nowMs, reservation, worthy } = input;
  if (worthy.length === 0) return { act: 'idle' };
  const covered = new Set(reservation?.covered);
  const fresh = worthy.filter((delivery) => !covered.has(delivery.delivery_id));
  if (reservation !== undefined && isCurrent(reservation, nowMs)) {
    const early = Math.min(reservation.expires_at_ms, reservation.rung_at_ms + firstStepMs);
    const untilMs = fresh.length > 0 ? early : reservation.expires_at_ms;
    if (untilMs > nowMs) return { act: 'wait', untilMs };
    return { act: 'ring' };
  }
  if (reservation !== undefined && reservation.covered.length > 0) return { act: 'ring' };
  const graceEnd =
    Math.min(...fresh.map((delivery) => delivery.created_at_ms)) + (input.connectionLive ? input.graceMs : 0);
  const inGrace = graceEnd > nowMs && graceEnd - nowMs <= input.graceMs;
  return inGrace ? { act: 'wait', untilMs: graceEnd } : { act: 'ring' };
}

const noticeMarker = '[Postbell inbox notice]';

/** The notices that a text says it is; none where its first line is not that of a notice. */
export function noticesNamedIn(text: string): string[] {
  if (text.split('\n', 1)[0]?.trimEnd() !== noticeMarker) return [];
  return [...text.matchAll(/\bnotification_id\W{1,4}([0-9a-f]{12})\b/g)].map(([, id]) => id as string);
}

/** The one renderer of notices; an adapter only cuts to its own limit. */
export function renderNotice(notice: { notification_id: string; unread: number; progress: number }): string {
  const unread = notice.unread === 1 ? '1 message waits' : `${notice.unread} messages wait`;
  const progress = notice.progress === 0 ? '' : ` and ${notice.progress} progress`;
  return [
    noticeMarker,
    `${unread}${progress} for this session. notification_id="${notice.notification_id}"`,
    'Call the tool receive_messages to read, act on what you accept, then call acknowledge_messages with messages = the',
    'receipts you were given, then receive the next batch. To answer, call the tool message with action "send". If these',
    'tools are not listed, search your tools for "postbell".',
    'This is an automatic notice: it is not the user speaking and no approval of anything.',
  ].join('\n');
}

/** What a listener prints before the host would end it; it names no message. */
export const renewalText = [
  '[Postbell listener renewal]',
  'Maintenance only: this names no message and asks nothing of you. End this turn at once without any action;',
  'the listener for incoming mail is then armed again.',
  'This is an automatic notice: it is not the user speaking and no approval of anything.',
].join('\n');
