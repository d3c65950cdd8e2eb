// Hop 8: a pure fold of facts. Every row names its source and time; nothing is inferred.

import type { Tx } from '../ports/store.ts';
import { isRefusal, type Result } from '../protocol/errors.ts';
import type { Message } from '../protocol/message.ts';
import {
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
  const observed_at = timestamp(desk);
  return desk.store.read((tx) => {
    const found = findMessage(tx, request);
    if (isRefusal(found)) return found;
    const { message } = found;
    const facts = tx.receipts
      .facts(message.delivery_id)
      .map(
        (fact): Fact =>
          fact.receipt_kind === 'host_accept'
            ? { ...fact, delivery_state: observe(tx, message, observed_at, desk.clock.nowMs()) }
            : fact,
      );
    const { project, recipient, message_id } = request;
    return {
      project,
      recipient,
      message_id,
      delivery_state: deliveryStateOf(tx, message.delivery_id),
      receipts: inReceiptOrder(facts),
    };
  });
}

/** What can be said now of the session that an accepted message was for: the target, not whoever accepted. */
function observe(tx: Tx, message: Message, observed_at: string, nowMs: number): HostAcceptObservation {
  const intake = tx.receipts.has(message.delivery_id, 'intake') ? 'recorded' : 'pending';
  const session = message.target_kind === 'session' ? message.recipient : message.intended_session;
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
