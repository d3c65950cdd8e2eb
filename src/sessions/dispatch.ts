// Hop 3: which live registration gets a delivery, under which generation. The attempt is written before anything is
// handed over; the acceptance in the transaction that finishes it, after looking at the connection again.

import { newId, timestamp } from '../mailbox/desk.ts';
import { currentReservation, joinReservation } from '../mailbox/reserve.ts';
import type { NotifyAnswer } from '../ports/router.ts';
import type { Acceptance, ConnectionRow, StoredMessage, Tx } from '../ports/store.ts';
import { noticeEnvelopeOf } from '../protocol/delivery.ts';
import type { Json } from '../protocol/json.ts';
import { limits } from '../protocol/limits.ts';
import { isLive } from '../protocol/session.ts';
import { endConnection } from './disconnect.ts';
import { namesOf } from './principals.ts';
import { recordPatiently } from './record.ts';
import type { HandOff, HostOutcome, Switchboard } from './switchboard.ts';

/** What the first transaction decided. */
type Plan = { answer: NotifyAnswer } | { connection: ConnectionRow; handOff: HandOff };

/** Hands one committed delivery to the session it is for, if there is one to hand it to. */
export async function dispatch(
  board: Switchboard,
  project: string,
  deliveryId: string,
): Promise<NotifyAnswer> {
  const plan = await board.store.write((tx) => decide(tx, board, project, deliveryId));
  if ('answer' in plan) return plan.answer;
  const outcome = await board.hand(plan.connection, plan.handOff);
  const answer = await recordPatiently(() =>
    board.store.write((tx) => finish(tx, board, plan.connection, plan.handOff, outcome)),
  );
  board.wake.touch();
  return answer;
}

function decide(tx: Tx, board: Switchboard, project: string, deliveryId: string): Plan {
  const stored = tx.messages.byDelivery(deliveryId);
  if (stored === undefined || stored.message.project !== project)
    return { answer: { delivered: false, reason: 'delivery_not_found' } };
  const accepted = tx.attempts.acceptanceOf(deliveryId);
  if (accepted !== undefined) return { answer: acceptedAnswer(accepted) };
  if (tx.receipts.has(deliveryId, 'intake')) return { answer: { delivered: true, quieted: 'taken_in' } };
  const target =
    stored.message.target_kind === 'session'
      ? sessionTarget(tx, board, stored)
      : principalTarget(tx, board, stored);
  return 'answer' in target ? target : begin(tx, board, stored, target);
}

/** The exact session: an absent, deaf or busy one is a failure with its reason. */
function sessionTarget(
  tx: Tx,
  board: Switchboard,
  { message, attention }: StoredMessage,
): ConnectionRow | { answer: NotifyAnswer } {
  const ids = tx.identity.chain(message.recipient);
  const live = tx.sessions.live(message.project, ids, board.clock.nowMs());
  const failed = (reason: NonNullable<NotifyAnswer['reason']>) => ({ answer: { delivered: false, reason } });
  if (live === undefined)
    return failed(
      tx.sessions.registered(message.project, ids) === undefined ? 'never_registered' : 'not_live',
    );
  if (!attention) return { answer: { delivered: true, quieted: 'progress' } };
  if (live.bell === 'none') return failed('no_bell');
  if (board.pending(live.connection_id) >= limits.handOffsPendingMax) return failed('busy');
  return live;
}

/** The newest live session of the principal that has a bell, if the delivery may be handed over at all. */
function principalTarget(
  tx: Tx,
  board: Switchboard,
  stored: StoredMessage,
): ConnectionRow | { answer: NotifyAnswer } {
  const { message } = stored;
  const nowMs = board.clock.nowMs();
  const not = (reason: NonNullable<NotifyAnswer['reason']>) => ({ answer: { delivered: false, reason } });
  if (!stored.attention) return { answer: { delivered: false, quieted: 'progress' } };
  const names = namesOf(tx, message.recipient);
  const live =
    message.intended_session === undefined
      ? liveUnder(tx, message.project, names, nowMs)
      : tx.sessions.live(message.project, tx.identity.chain(message.intended_session), nowMs);
  if (live === undefined || !names.includes(live.principal_id)) return not('not_live');
  if (live.bell === 'none') return not('no_bell');
  const checkpoint = tx.sessions.checkpoint(message.project, live.principal_id);
  if (checkpoint === undefined || stored.event_seq <= checkpoint) return not('before_checkpoint');
  if (currentReservation(tx, rootOf(tx, live), nowMs) !== undefined) return not('covered');
  if (board.pending(live.connection_id) >= limits.handOffsPendingMax) return not('busy');
  return live;
}

function liveUnder(
  tx: Tx,
  project: string,
  names: readonly string[],
  nowMs: number,
): ConnectionRow | undefined {
  for (const name of names) {
    const live = tx.sessions.liveOfPrincipal(project, name, nowMs);
    if (live !== undefined) return live;
  }
  return undefined;
}

const rootOf = (tx: Tx, connection: ConnectionRow): string =>
  tx.identity.chain(connection.session_id)[0] as string;

/** Attempt and coverage in one transaction: from here on the session's notifier leaves this delivery alone. */
function begin(tx: Tx, board: Switchboard, { message }: StoredMessage, connection: ConnectionRow): Plan {
  const { delivery_id, project } = message;
  const attempt_id = newId(board, 'att');
  const { connection_id, principal_id, session_id } = connection;
  tx.attempts.start({
    attempt_id,
    delivery_id,
    connection_id,
    router_instance: board.instance,
    at: timestamp(board),
  });
  const notificationId = joinReservation(tx, board, rootOf(tx, connection), delivery_id);
  const envelope = noticeEnvelopeOf(message, notificationId) as unknown as Json;
  return {
    connection,
    handOff: { attempt_id, delivery_id, project, principal_id, session_id, content: 'notice', envelope },
  };
}

function finish(
  tx: Tx,
  board: Switchboard,
  connection: ConnectionRow,
  { attempt_id, delivery_id }: HandOff,
  outcome: HostOutcome,
): NotifyAnswer {
  const at = timestamp(board);
  const attempt = tx.attempts.byId(attempt_id);
  if (attempt?.state !== 'started') return { delivered: false, reason: endReason(attempt?.failure_code) };
  const fail = (
    state: 'adapter_rejected' | 'adapter_failed',
    reason: NonNullable<NotifyAnswer['reason']>,
  ): NotifyAnswer => {
    tx.attempts.finish(attempt_id, state, reason, at);
    tx.notices.fail(delivery_id);
    return { delivered: false, reason };
  };
  if (!isLive(tx.sessions.connection(connection.connection_id), board.clock.nowMs())) {
    endConnection(tx, board, connection.connection_id, 'lease_expired');
    return { delivered: false, reason: 'not_live' };
  }
  if (outcome.outcome === 'timeout') return fail('adapter_failed', 'host_outcome_timeout');
  if (outcome.outcome === 'disconnected') return fail('adapter_failed', 'adapter_disconnected');
  if (outcome.outcome === 'rejected')
    return fail(
      'adapter_rejected',
      outcome.failure_code === 'adapter_error' ? 'adapter_error' : 'adapter_rejected',
    );
  const acceptance: Acceptance = {
    host_accept_id: newId(board, 'acc'),
    delivery_id,
    attempt_id,
    content: outcome.content,
    adapter_kind: connection.adapter_kind,
    receipt: JSON.stringify(outcome.receipt),
    accepted_at: at,
  };
  tx.attempts.finish(attempt_id, 'adapter_returned', undefined, at);
  tx.attempts.accept(acceptance);
  return acceptedAnswer(acceptance);
}

/** The attempt ended with its connection while the host was asked. */
const endReason = (code: string | null | undefined): NonNullable<NotifyAnswer['reason']> =>
  code === 'stale_generation' ? 'replaced' : 'adapter_disconnected';

function acceptedAnswer(acceptance: Acceptance): NotifyAnswer {
  const { delivery_id, adapter_kind, receipt, accepted_at } = acceptance;
  return {
    delivered: true,
    native_delivery: {
      status: 'native_accepted',
      delivery_id,
      adapter_kind,
      receipt: JSON.parse(receipt) as Json,
      accepted_at,
    },
  };
}
