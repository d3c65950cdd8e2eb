// Hop 8: a pure fold of facts. Every row names its source and time; nothing is inferred.

import type { StoredMessage } from '../ports/mail.ts';
import type { Tx } from '../ports/store.ts';
import { isRefusal, type Result } from '../protocol/errors.ts';
import { type Message, sessionMeant } from '../protocol/message.ts';
import {
  type ExpiredFact,
  type Fact,
  type HostAcceptObservation,
  inReceiptOrder,
  type ReceiptsAnswer,
} from '../protocol/receipts.ts';
import type { ReceiptsRequest } from '../protocol/requests.ts';
import { type Desk, timestamp } from './desk.ts';
import { findMessage } from './find.ts';
import { deliveryStateOf } from './state.ts';

export function receipts(
  desk: Pick<Desk, 'store' | 'clock'>,
  request: ReceiptsRequest,
): Result<ReceiptsAnswer> {
  return desk.store.read((tx) => {
    const found = findMessage(tx, request, { sent: true });
    if (isRefusal(found)) return found;
    const { message } = found;
    const { project, recipient, message_id } = request;
    return {
      project,
      recipient,
      message_id,
      delivery_state: deliveryStateOf(tx, message.delivery_id),
      receipts: factsOf(tx, desk, found),
    };
  });
}

/** Every fact of the message, in order, with what can be observed now. */
export function factsOf(
  tx: Tx,
  desk: Pick<Desk, 'clock'>,
  { message, superseded_by }: StoredMessage,
): Fact[] {
  const observed_at = timestamp(desk);
  const facts = tx.receipts
    .facts(message.delivery_id)
    .map(
      (fact): Fact =>
        fact.receipt_kind === 'host_accept'
          ? { ...fact, delivery_state: observe(tx, message, observed_at, desk.clock.nowMs()) }
          : fact,
    );
  const expired = expiry(message, facts, endOfWaiting(tx, superseded_by) ?? observed_at);
  return inReceiptOrder(expired === undefined ? facts : [...facts, expired]);
}

/** When something newer took its place: what had expired by then stays so. */
const endOfWaiting = (tx: Tx, supersededBy: string | undefined): string | undefined =>
  supersededBy === undefined ? undefined : tx.messages.byId(supersededBy)?.message.created_at;

/** Its time has passed while it still waited, until `untilIso` at most. */
function expiry(
  { expires_at, peer }: Message,
  facts: readonly Fact[],
  untilIso: string,
): ExpiredFact | undefined {
  // What went to another machine expires by its outbox entry, if it does.
  if (peer !== undefined || expires_at === undefined || expires_at > untilIso) return undefined;
  const takenIn = facts.some((fact) => fact.receipt_kind === 'intake' && fact.recorded_at < expires_at);
  return takenIn
    ? undefined
    : {
        receipt_kind: 'expired',
        value: 'expired',
        source: 'message',
        actor: 'postbell',
        recorded_at: expires_at,
      };
}

/** What can be said now of the session that an accepted message was for: the target, not whoever accepted. */
function observe(tx: Tx, message: Message, observed_at: string, nowMs: number): HostAcceptObservation {
  const intake = tx.receipts.has(message.delivery_id, 'intake') ? 'recorded' : 'pending';
  const session = sessionMeant(message);
  if (session === undefined) return { observed_at, intake, target_session: 'not_applicable' };
  const ids = tx.identity.chain(session);
  const registered = tx.sessions.registered(message.project, ids) !== undefined;
  const live = tx.sessions.live(message.project, ids, nowMs) !== undefined;
  return {
    observed_at,
    intake,
    target_session: !registered ? 'unknown' : live ? 'live' : 'not_live',
    session,
  };
}
