// Hop 3: one committed delivery goes to the session it is for. The attempt is written before anything is handed over;
// the acceptance in the transaction that finishes it, after looking at the connection again.

import { newId, timestamp } from '../mailbox/desk.ts';
import { joinReservation } from '../mailbox/reserve.ts';
import type { StoredMessage } from '../ports/mail.ts';
import type { ConnectionRow } from '../ports/presence.ts';
import type { NotifyAnswer } from '../ports/router.ts';
import type { Tx } from '../ports/store.ts';
import { noticeEnvelopeOf } from '../protocol/delivery.ts';
import type { Json } from '../protocol/json.ts';
import { finish, inDoubt, knownAnswer } from './finish.ts';
import { recordPatiently } from './record.ts';
import type { HandOff, Switchboard } from './switchboard.ts';
import { principalTarget, sessionTarget, type Target } from './target.ts';

/** What the first transaction decided. */
type Plan = { answer: NotifyAnswer } | { connection: ConnectionRow; handOff: HandOff };

/**
 * Hands the delivery to the session it is for, if there is one to hand it to.
 * @param expectedGeneration only this registration of the exact session may get it
 */
export async function dispatch(
  board: Switchboard,
  project: string,
  deliveryId: string,
  expectedGeneration?: number,
): Promise<NotifyAnswer> {
  const plan = await board.store.write((tx) => decide(tx, board, project, deliveryId, expectedGeneration));
  if ('answer' in plan) return plan.answer;
  const outcome = await board.hand(plan.connection, plan.handOff);
  const answer = await recordPatiently(board, () =>
    board.store.write((tx) => finish(tx, board, plan.connection, plan.handOff, outcome)),
  );
  board.wake.touch();
  return answer;
}

/** What is known already is answered first; then who may get it. */
function decide(
  tx: Tx,
  board: Switchboard,
  project: string,
  deliveryId: string,
  expectedGeneration: number | undefined,
): Plan {
  const stored = tx.messages.byDelivery(deliveryId);
  if (stored === undefined || stored.message.project !== project)
    return { answer: { delivered: false, reason: 'delivery_not_found' } };
  const known = knownAnswer(tx, deliveryId);
  if (known !== undefined) return { answer: known };
  const nowMs = board.clock.nowMs();
  const target =
    stored.message.target_kind === 'session'
      ? sessionTarget(tx, stored, expectedGeneration, nowMs)
      : principalTarget(tx, stored, nowMs);
  return 'answer' in target
    ? { answer: inDoubt(tx, deliveryId, target.answer) }
    : begin(tx, board, stored, target);
}

/** Attempt and coverage in one transaction: from here on the session's notifier leaves this delivery alone. */
function begin(tx: Tx, board: Switchboard, { message }: StoredMessage, target: Target): Plan {
  const { delivery_id, project } = message;
  const { connection, sessionRoot } = target;
  const attempt_id = newId(board, 'att');
  const { connection_id, principal_id, session_id } = connection;
  tx.attempts.start({
    attempt_id,
    delivery_id,
    connection_id,
    router_instance: board.instance,
    at: timestamp(board),
  });
  const notificationId = joinReservation(tx, board, sessionRoot, [delivery_id]);
  const of = { attempt_id, delivery_id, project, principal_id, session_id };
  const handOff: HandOff =
    target.full === undefined
      ? { ...of, content: 'notice', envelope: noticeEnvelopeOf(message, notificationId) as unknown as Json }
      : { ...of, content: 'full', envelope: target.full };
  return { connection, handOff };
}
