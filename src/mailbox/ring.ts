// Hop 4: ring. Three causes, one bell: the router's hand-off, the session's own notifier on its schedule, and a failed
// notice that is rung again. None waits for another; the reservation in the store keeps them apart.

import type { Bell, MessageLabels, RingItem, RingOutcome } from '../ports/bell.ts';
import type { Tx } from '../ports/store.ts';
import { type CoveredMessage, envelopeOf, receiptKeyOf } from '../protocol/delivery.ts';
import { isRefusal, Refusal, type Result } from '../protocol/errors.ts';
import type { Json } from '../protocol/json.ts';
import { utf8Bytes } from '../protocol/json.ts';
import { limits } from '../protocol/limits.ts';
import type { Message } from '../protocol/message.ts';
import { decideRing, firstStepMs, isPreparing, renderNotice } from '../protocol/notices.ts';
import { handOffStands, isLive } from '../protocol/session.ts';
import { renderWhole } from '../protocol/whole.ts';
import type { Desk, Who } from './desk.ts';
import { inboxOf } from './inbox.ts';
import { type Rang, recordOutcome } from './outcome.ts';
import { atMost, pause } from './patience.ts';
import { currentReservation, openReservation } from './reserve.ts';
import { ringOnce } from './ring-once.ts';
import { ringForPairing } from './ring-pairing.ts';

/** The session that rings, and its project. */
export interface Ringing {
  caller: Who & { session: string };
  project: string;
}

export type RingDesk = Pick<Desk, 'store' | 'clock' | 'random'>;

/** Told of what failed beside the ring itself. */
type OnFault = (error: unknown) => void;

/** While a host that takes one prompt at a time is in a turn. */
const busyLookMs = 1_000;
/** How long an answer to the router waits for the write of its own state. */
const writeWaitMs = 1_000;

/**
 * One round of the notifier: rings if something is due, for mail first and then for pairing.
 * @returns when to look again at the latest; undefined where nothing waits.
 */
export async function reconcile(
  desk: RingDesk,
  ringing: Ringing,
  bell: Bell,
  onFault: OnFault,
): Promise<number | undefined> {
  const mail = await ringForMail(desk, ringing, bell, onFault);
  const pairing = await ringForPairing(desk, ringing.caller.session, bell);
  return mail === undefined || pairing === undefined ? (mail ?? pairing) : Math.min(mail, pairing);
}

async function ringForMail(
  desk: RingDesk,
  ringing: Ringing,
  bell: Bell,
  onFault: OnFault,
): Promise<number | undefined> {
  const look = desk.store.read((tx) => decide(tx, desk, ringing));
  if (look.act === 'idle') return undefined;
  if (look.act === 'wait') return look.untilMs;
  const step = await desk.store.write((tx) => reserve(tx, desk, ringing));
  if (typeof step !== 'string') return step.untilMs;
  await ringReserved(desk, ringing, bell, step, onFault);
  return desk.clock.nowMs();
}

/** What to do now, in one snapshot. */
function decide(tx: Tx, desk: RingDesk, ringing: Ringing) {
  const { root, ids, worthy } = worthyFor(tx, desk, ringing);
  const nowMs = desk.clock.nowMs();
  const decision = decideRing({
    nowMs,
    reservation: tx.notices.newest(root),
    worthy: worthy.map(({ delivery_id, created_at }) => ({
      delivery_id,
      created_at_ms: Date.parse(created_at),
    })),
    connectionLive: tx.sessions.live(ringing.project, ids, nowMs) !== undefined,
    graceMs: limits.notifierGraceMs,
  });
  return { ...decision, root, worthy: worthy.map(({ delivery_id }) => delivery_id) };
}

/** All that is attention-worthy, however much: what is covered is never what a page happened to hold. */
function worthyFor(tx: Tx, desk: RingDesk, ringing: Ringing) {
  const session = sessionInbox(tx, desk, ringing);
  return { ...session, worthy: tx.waiting.worthy(session.inbox) };
}

/** Decides again under the write lock, and opens the reservation that the ring stands on. */
function reserve(tx: Tx, desk: RingDesk, ringing: Ringing): string | { untilMs?: number } {
  const decision = decide(tx, desk, ringing);
  if (decision.act === 'idle') return {};
  if (decision.act === 'wait') return { untilMs: decision.untilMs };
  return openReservation(tx, desk, decision.root, decision.worthy);
}

/** Rings for a reservation that is `preparing`, and writes what came of it. */
async function ringReserved(
  desk: RingDesk,
  ringing: Ringing,
  bell: Bell,
  notificationId: string,
  onFault: OnFault,
): Promise<RingOutcome> {
  const tooLate: RingOutcome = { outcome: 'unknown', code: 'stale_generation' };
  while (waitsForTurn(bell)) {
    await pause(desk.clock, busyLookMs);
    if (!desk.store.read((tx) => isPreparing(tx.notices.byId(notificationId), desk.clock.nowMs())))
      return tooLate;
  }
  const rang = desk.store.read((tx) => noticeFor(tx, desk, ringing, bell, notificationId));
  const { outcome, late } = await ringOnce(desk.clock, bell, rang.item);
  late?.then((known) => recordOutcome(desk, rang, known, onFault)).catch(onFault);
  await recordOutcome(desk, rang, outcome, onFault);
  return outcome;
}

/** A host that takes one prompt at a time is waited for; the reservation stays `preparing`. */
const waitsForTurn = (bell: Bell): boolean =>
  bell.describe().pendingMax === 1 && bell.state().state === 'busy';

/** A hand-off of the router, as far as a ring needs it. */
export interface RingHandOff {
  attempt_id: string;
  delivery_id: string;
  content: 'notice' | 'full';
}

/**
 * Rings for the router's hand-off. It may resolve after the router gave up. `unknown` is answered by silence: the router
 * stops waiting by itself.
 */
export async function ringForHandOff(
  desk: RingDesk,
  ringing: Ringing,
  bell: Bell,
  handOff: RingHandOff,
  onFault: OnFault,
): Promise<RingOutcome> {
  let waited = false;
  const look = () => desk.store.read((tx) => planHandOff(tx, desk, ringing, bell, handOff, waited));
  let plan = look();
  for (; !('outcome' in plan) && waitsForTurn(bell); plan = look()) {
    waited = true;
    await pause(desk.clock, busyLookMs);
  }
  if ('outcome' in plan) return plan;
  const rang = plan;
  const record = (known: RingOutcome) =>
    atMost(desk.clock, recordOutcome(desk, rang, known, onFault).catch(onFault), writeWaitMs);
  const { outcome, late } = await ringOnce(desk.clock, bell, rang.item);
  await record(outcome);
  if (late === undefined) return outcome;
  const known = await late;
  await record(known);
  return known;
}

/**
 * Nothing is rung under an attempt that is over, unless this ring `waited` for a turn to end and the router no longer did:
 * then its acceptance is a late one. What this reservation rang for already is not rung again.
 */
function planHandOff(
  tx: Tx,
  desk: RingDesk,
  ringing: Ringing,
  bell: Bell,
  { attempt_id, delivery_id, content }: RingHandOff,
  waited: boolean,
): Rang | RingOutcome {
  const notification_id = tx.notices.covering(delivery_id, tx.identity.chain(ringing.caller.session));
  const attempt = tx.attempts.byId(attempt_id);
  const connection = attempt && tx.sessions.connection(attempt.connection_id);
  const nowMs = desk.clock.nowMs();
  const tooLong = waited && attempt?.failure_code === 'host_outcome_timeout' && isLive(connection, nowMs);
  const stands = handOffStands(attempt, connection, nowMs) || tooLong;
  if (!stands || notification_id === undefined) return { outcome: 'unknown', code: 'stale_generation' };
  const rang = noticeFor(tx, desk, ringing, bell, notification_id);
  const item: RingItem = { ...rang.item, attempt_id };
  if (content === 'full') {
    const whole = wholeOf(tx, bell, delivery_id);
    if (whole !== undefined)
      return {
        ...rang,
        delivery_id,
        covers: [delivery_id],
        item: { ...item, content, ...whole, covered: keysOf(tx, [delivery_id]) },
      };
  }
  if (bell.describe().bell !== 'listener' && tx.notices.isRung(notification_id, delivery_id)) {
    const state = tx.notices.byId(notification_id)?.state ?? 'preparing';
    if (state !== 'delivery_failed')
      return {
        outcome: 'accepted',
        content: 'notice',
        receipt: answered(tx, notification_id) ?? { notification_id, state },
      };
  }
  // Also where it waits no more.
  return { ...rang, delivery_id, covers: [...rang.covers, delivery_id], item };
}

/** What the host answered when it was rung for this reservation. */
function answered(tx: Tx, notification_id: string): Json | undefined {
  const receipt = tx.notices.receiptOf(notification_id);
  return receipt === undefined ? undefined : (JSON.parse(receipt) as Json);
}

/** A failed notice once more, on the current reservation or a new one. Refused while another ring is being made. */
export async function ringAgain(
  desk: RingDesk,
  ringing: Ringing,
  bell: Bell,
  onFault: OnFault,
): Promise<Result<RingOutcome | undefined>> {
  const begun = await desk.store.write((tx) => beginAgain(tx, desk, ringing));
  if (begun === undefined || isRefusal(begun)) return begun;
  return ringReserved(desk, ringing, bell, begun, onFault);
}

/** Undefined where nothing waits that a notice could be about. */
function beginAgain(tx: Tx, desk: RingDesk, ringing: Ringing): Result<string | undefined> {
  const found = worthyFor(tx, desk, ringing);
  const { root } = found;
  const worthy = found.worthy.map(({ delivery_id }) => delivery_id);
  if (worthy.length === 0) return undefined;
  const nowMs = desk.clock.nowMs();
  const current = currentReservation(tx, root, nowMs);
  if (current === undefined) return openReservation(tx, desk, root, worthy);
  const { notification_id } = current;
  if (current.state === 'preparing')
    return new Refusal('recipient_unavailable', 'a ring is being made just now', { reason: 'busy' });
  tx.notices.cover(notification_id, worthy);
  tx.notices.setState(notification_id, 'preparing');
  tx.notices.setEnd(notification_id, nowMs, nowMs + firstStepMs);
  return notification_id;
}

/** The notice of a reservation, for whatever this bell is. */
function noticeFor(tx: Tx, desk: RingDesk, ringing: Ringing, bell: Bell, notification_id: string): Rang {
  const { inbox, root } = sessionInbox(tx, desk, ringing);
  const text = renderNotice({ notification_id, ...tx.waiting.counts(inbox) });
  const covers = tx.notices.byId(notification_id)?.covered ?? [];
  const covered = keysOf(tx, covers);
  const { bell: name } = bell.describe();
  const item: RingItem = {
    content: 'notice',
    notification_id,
    text,
    covered,
    session_id: ringing.caller.session,
    ...(name === 'channel' && {
      unanswered: tx.notices.unanswered(notification_id, limits.channelUnansweredMax),
    }),
  };
  return { root, bell: name, notice: text, item, covers };
}

/** The whole message, where the bell takes one and it fits. */
function wholeOf(tx: Tx, bell: Bell, deliveryId: string): Pick<RingItem, 'text' | 'about'> | undefined {
  const { contents, fullBytesMax } = bell.describe();
  const message = tx.messages.byDelivery(deliveryId)?.message;
  if (message === undefined || !contents.includes('full')) return undefined;
  const payload = JSON.parse(tx.messages.payload(message.message_id).json) as Json;
  const text = renderWhole(envelopeOf(message, payload));
  return utf8Bytes(text) <= fullBytesMax ? { text, about: labelsOf(message) } : undefined;
}

function labelsOf({ sender, message_id, task_id, status, reply_to }: Message): MessageLabels {
  return {
    sender,
    msg_id: message_id,
    ...(task_id !== undefined && { task_id }),
    ...(status !== undefined && { status }),
    ...(reply_to !== undefined && { in_reply_to: reply_to }),
  };
}

function keysOf(tx: Tx, deliveryIds: readonly string[]): CoveredMessage[] {
  return deliveryIds.flatMap((id) => {
    const message = tx.messages.byDelivery(id)?.message;
    if (message === undefined) return [];
    const { project, recipient, target_kind, message_id, delivery_id } = message;
    return [{ ...receiptKeyOf(message), project, recipient, target_kind, message_id, delivery_id }];
  });
}

function sessionInbox(tx: Tx, desk: RingDesk, ringing: Ringing) {
  const ids = tx.identity.chain(ringing.caller.session);
  const inbox = inboxOf(tx, ringing.caller, { project: ringing.project }, desk.clock.nowMs());
  if (isRefusal(inbox)) throw new Error(`a registered session has an inbox: ${inbox.message}`);
  return { inbox, ids, root: ids[0] as string };
}
