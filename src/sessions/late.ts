// An outcome that nobody waits for any more. An acceptance after the time-out is recorded once, where everything about
// it is as it was; the attempt stays as it was recorded, for its sender was told right.

import type { AttemptRow } from '../ports/presence.ts';
import type { Tx } from '../ports/store.ts';
import { Refusal, type Result } from '../protocol/errors.ts';
import { type ConnectionKey, isLive } from '../protocol/session.ts';
import { accept } from './finish.ts';
import { recordPatiently } from './record.ts';
import type { HostOutcome, Switchboard } from './switchboard.ts';

export interface OutcomeKey extends ConnectionKey {
  attempt_id: string;
  delivery_id: string;
}

/** `unfinished`: what was settled just now is not written yet. */
export type LateAnswer = Result<{ correlated: true } | { duplicate: true }> | 'unfinished';

export async function settleLate(
  board: Switchboard,
  of: OutcomeKey,
  outcome: HostOutcome,
): Promise<LateAnswer> {
  const answer = await recordPatiently(board, () =>
    board.store.write((tx) => settle(tx, board, of, outcome)),
  );
  if (typeof answer === 'object' && 'correlated' in answer) board.wake.touch();
  return answer;
}

function settle(tx: Tx, board: Switchboard, of: OutcomeKey, outcome: HostOutcome): LateAnswer {
  const attempt = tx.attempts.byId(of.attempt_id);
  if (attempt?.delivery_id !== of.delivery_id || attempt.connection_id !== of.connection_id)
    return new Refusal('outcome_scope_mismatch', 'no such attempt of this delivery on this connection');
  if (attempt.state === 'started') return 'unfinished';
  if (outcome.outcome !== 'accepted') return { duplicate: true };
  const accepted = tx.attempts.acceptanceOf(of.delivery_id);
  if (accepted?.attempt_id === of.attempt_id) return { duplicate: true };
  if (accepted !== undefined)
    return new Refusal('already_accepted', 'another attempt of this delivery was accepted');
  const connection = board.leases.of(tx.sessions.connection(of.connection_id));
  if (connection?.generation !== of.generation || !isLive(connection, board.clock.nowMs()))
    return new Refusal('stale_generation', 'this connection has ended or is not yours');
  if (!timedOutHere(attempt, board.instance))
    return new Refusal('outcome_scope_mismatch', 'the attempt did not end by a time-out of this router');
  accept(tx, board, connection, of, outcome);
  return { correlated: true };
}

const timedOutHere = (attempt: AttemptRow, instance: string): boolean =>
  attempt.router_instance === instance &&
  attempt.state === 'adapter_failed' &&
  attempt.failure_code === 'host_outcome_timeout';
