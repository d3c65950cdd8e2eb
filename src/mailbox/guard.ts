// The loop guard of a send, asked within its transaction.

import { rootOf } from '../crypto/root-id.ts';
import type { Tx } from '../ports/store.ts';
import { Refusal } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import type { Message } from '../protocol/message.ts';

/** Where a message stands in a chain of answers. */
export interface Chain {
  hops: number;
  /** The first message's id on the wire; undefined at the start of a chain. */
  root_id: string | undefined;
}

/** One hop more than the message it answers; the start of a chain where it answers none that is known. */
export function chainOf(tx: Tx, replyTo: string | undefined): Chain {
  const answered = replyTo === undefined ? undefined : tx.messages.byId(replyTo);
  if (answered === undefined) return { hops: 0, root_id: undefined };
  const { message_id, hops = 0 } = answered.message;
  return { hops: hops + 1, root_id: answered.root_id ?? rootOf(message_id) };
}

/** Refuses `loop_limit` and `rate_limited`. */
export function checkLoop(tx: Tx, message: Message, nowMs: number): Refusal | undefined {
  const { hops = 0, project, recipient, sender, provenance, peer } = message;
  if (hops === 0) return undefined;
  if (hops > limits.hopsMax)
    return new Refusal(
      'loop_limit',
      `this is answer ${hops} in a row; at most ${limits.hopsMax} before a person is asked`,
      { hops },
    );
  const pair = {
    project,
    recipient,
    sender,
    ...(peer !== undefined && { peer }),
    ...(provenance.session !== undefined && { sessions: tx.identity.chain(provenance.session) }),
  };
  const window = {
    since: new Date(nowMs - limits.automaticWindowMs).toISOString(),
    until: new Date(nowMs).toISOString(),
  };
  const recent = tx.messages.automatic(pair, window, limits.automaticCountMax);
  const oldest = recent[limits.automaticCountMax - 1];
  if (oldest === undefined) return undefined;
  const wait_ms = Date.parse(oldest) + limits.automaticWindowMs - nowMs;
  return new Refusal(
    'rate_limited',
    `more than ${limits.automaticCountMax} answers to one recipient in ten minutes; wait ${Math.ceil(wait_ms / 1_000)} s`,
    { wait_ms },
  );
}
