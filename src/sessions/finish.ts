// What a host answered, or that it did not: the attempt is finished once, and its acceptance is written with it.

import { newId, timestamp } from '../mailbox/desk.ts';
import type { Acceptance, ConnectionRow } from '../ports/presence.ts';
import type { NotifyAnswer } from '../ports/router.ts';
import type { Tx } from '../ports/store.ts';
import { hostFailure } from '../protocol/host-failure.ts';
import type { Json } from '../protocol/json.ts';
import { isLive } from '../protocol/session.ts';
import { endConnection } from './disconnect.ts';
import { openRelease } from './release.ts';
import type { HandOff, HostOutcome, Switchboard } from './switchboard.ts';

/** What the session took in by itself meanwhile, or accepted by an earlier attempt, is no failure, however this one ended. */
export function finish(
  tx: Tx,
  board: Switchboard,
  connection: ConnectionRow,
  handOff: HandOff,
  outcome: HostOutcome,
): NotifyAnswer {
  const answer = end(tx, board, connection, handOff, outcome);
  return answer.delivered
    ? answer
    : (knownAnswer(tx, handOff.delivery_id) ?? inDoubt(tx, handOff.delivery_id, answer));
}

/** What is not delivered may have reached a host all the same. */
export const inDoubt = (tx: Tx, deliveryId: string, answer: NotifyAnswer): NotifyAnswer =>
  !answer.delivered && tx.attempts.mayHaveReached(deliveryId) ? { ...answer, unclear: true } : answer;

function end(
  tx: Tx,
  board: Switchboard,
  connection: ConnectionRow,
  { attempt_id, delivery_id, content }: HandOff,
  outcome: HostOutcome,
): NotifyAnswer {
  const at = timestamp(board);
  const attempt = tx.attempts.byId(attempt_id);
  if (attempt?.state !== 'started') return { delivered: false, reason: endReason(attempt?.failure_code) };
  if (!isLive(board.leases.of(tx.sessions.connection(connection.connection_id)), board.clock.nowMs())) {
    endConnection(tx, board, connection.connection_id, 'lease_expired');
    return { delivered: false, reason: 'not_live' };
  }
  // By an earlier attempt, late, while this one was under way.
  const earlier = tx.attempts.acceptanceOf(delivery_id);
  if (outcome.outcome === 'accepted') {
    tx.attempts.finish(attempt_id, 'adapter_returned', undefined, at);
    // A host that was handed a notice has taken no more than that, whatever it says.
    const taken = content === 'notice' ? { ...outcome, content } : outcome;
    const acceptance = earlier ?? accept(tx, board, connection, { attempt_id, delivery_id }, taken);
    return acceptedAnswer(acceptance);
  }
  const [state, reason] = failureOf(outcome);
  tx.attempts.finish(attempt_id, state, reason, at);
  if (earlier === undefined) tx.notices.fail(delivery_id, tx.identity.chain(connection.session_id));
  return { delivered: false, reason };
}

/** The acceptance of an attempt, of which a delivery has one at most. */
export function accept(
  tx: Tx,
  board: Pick<Switchboard, 'clock' | 'random'>,
  connection: Pick<ConnectionRow, 'adapter_kind' | 'session_id'>,
  of: { attempt_id: string; delivery_id: string },
  outcome: Extract<HostOutcome, { outcome: 'accepted' }>,
): Acceptance {
  const acceptance: Acceptance = {
    host_accept_id: newId(board, 'acc'),
    delivery_id: of.delivery_id,
    attempt_id: of.attempt_id,
    content: outcome.content,
    adapter_kind: connection.adapter_kind,
    receipt: JSON.stringify(outcome.receipt),
    accepted_at: timestamp(board),
  };
  tx.attempts.accept(acceptance);
  openRelease(tx, board, acceptance, connection.session_id, outcome.receipt);
  if (outcome.content === 'full')
    tx.notices.markPushed(of.delivery_id, tx.identity.chain(connection.session_id));
  return acceptance;
}

type Failure = readonly ['adapter_rejected' | 'adapter_failed', NonNullable<NotifyAnswer['reason']>];

function failureOf(outcome: Exclude<HostOutcome, { outcome: 'accepted' }>): Failure {
  if (outcome.outcome === 'timeout') return ['adapter_failed', 'host_outcome_timeout'];
  if (outcome.outcome === 'disconnected') return ['adapter_failed', 'adapter_disconnected'];
  return ['adapter_rejected', hostFailure(outcome.failure_code)];
}

/** The attempt ended with its connection while the host was asked. */
const endReason = (code: string | null | undefined): NonNullable<NotifyAnswer['reason']> =>
  code === 'stale_generation' ? 'replaced' : 'adapter_disconnected';

/** What the store knows of a delivery that needs no hand-over any more: its acceptance, or that it was taken in. */
export function knownAnswer(tx: Tx, deliveryId: string): NotifyAnswer | undefined {
  const accepted = tx.attempts.acceptanceOf(deliveryId);
  if (accepted !== undefined) return acceptedAnswer(accepted);
  return tx.receipts.has(deliveryId, 'intake') ? { delivered: true, quieted: 'taken_in' } : undefined;
}

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
