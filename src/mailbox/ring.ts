// Hop 4: ring. Two causes, one bell: the router's hand-off, and the session's own notifier on its schedule. Neither
// waits for the other; the reservation in the store keeps them apart.

import type { Bell, RingOutcome } from '../ports/bell.ts';
import type { Tx } from '../ports/store.ts';
import { isRefusal } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import { decideRing, renderNotice } from '../protocol/notices.ts';
import type { Caller, Desk } from './desk.ts';
import { inboxOf } from './inbox.ts';
import { openReservation } from './reserve.ts';

/** The session that rings: its caller identity and its project. */
export interface Ringing {
  caller: Caller & { session: string };
  project: string;
}

const waitingCountMax = 500;

type Step = { ring: { notification_id: string; text: string } } | { ring?: never; untilMs?: number };

/**
 * One round of the notifier: rings if something is due.
 * @returns when to look again at the latest; undefined where nothing waits.
 */
export async function reconcile(desk: Desk, ringing: Ringing, bell: Bell): Promise<number | undefined> {
  const look = desk.store.read((tx) => decide(tx, desk, ringing));
  if (look.act === 'idle') return undefined;
  if (look.act === 'wait') return look.untilMs;
  const step = await desk.store.write((tx) => reserve(tx, desk, ringing));
  if (step.ring === undefined) return step.untilMs;
  const { session } = ringing.caller;
  const outcome = await bell.ring({ ...step.ring, session_id: session });
  if (outcome.outcome === 'rejected')
    await desk.store.write((tx) => tx.notices.setState(step.ring.notification_id, 'delivery_failed'));
  return desk.clock.nowMs();
}

/** What to do now, in one snapshot. */
function decide(tx: Tx, desk: Desk, ringing: Ringing) {
  const { inbox, root, ids } = sessionInbox(tx, desk, ringing);
  const waiting = tx.waiting.list(inbox, waitingCountMax);
  const nowMs = desk.clock.nowMs();
  const decision = decideRing({
    nowMs,
    reservation: tx.notices.newest(root),
    waiting: waiting.map(({ message, attention }) => ({
      delivery_id: message.delivery_id,
      created_at_ms: Date.parse(message.created_at),
      attention,
    })),
    connectionLive: tx.sessions.live(ringing.project, ids, nowMs) !== undefined,
    graceMs: limits.notifierGraceMs,
  });
  return { ...decision, root, worthy: waiting.filter((stored) => stored.attention) };
}

/** Decides again under the write lock, and opens the reservation that the ring stands on. */
function reserve(tx: Tx, desk: Desk, ringing: Ringing): Step {
  const decision = decide(tx, desk, ringing);
  if (decision.act === 'idle') return {};
  if (decision.act === 'wait') return { untilMs: decision.untilMs };
  const covers = decision.worthy.map(({ message }) => message.delivery_id);
  const notification_id = openReservation(tx, desk, decision.root, covers);
  return { ring: { notification_id, text: noticeText(tx, desk, ringing, notification_id) } };
}

/** Rings for the router's hand-off. `unknown` is answered by silence: the router stops waiting by itself. */
export async function ringForHandOff(
  desk: Desk,
  ringing: Ringing,
  bell: Bell,
  handOff: { attempt_id: string; delivery_id: string; notification_id: string },
): Promise<RingOutcome> {
  const { notification_id, ...attempt } = handOff;
  const text = desk.store.read((tx) => noticeText(tx, desk, ringing, notification_id));
  return bell.ring({ notification_id, text, session_id: ringing.caller.session, attempt });
}

function noticeText(tx: Tx, desk: Desk, ringing: Ringing, notification_id: string): string {
  return renderNotice({ notification_id, ...tx.waiting.counts(sessionInbox(tx, desk, ringing).inbox) });
}

function sessionInbox(tx: Tx, desk: Desk, ringing: Ringing) {
  const ids = tx.identity.chain(ringing.caller.session);
  const inbox = inboxOf(tx, ringing.caller, { project: ringing.project }, desk.clock.nowMs());
  if (isRefusal(inbox)) throw new Error(`a registered session has an inbox: ${inbox.message}`);
  return { inbox, ids, root: ids[0] as string };
}
