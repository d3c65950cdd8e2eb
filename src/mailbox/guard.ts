// The loop guard of a send, asked within its transaction.

import { rootOf } from '../crypto/root-id.ts';
import type { StoredMessage } from '../ports/mail.ts';
import type { Tx } from '../ports/store.ts';
import { Refusal } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import type { Message } from '../protocol/message.ts';
import type { Caller, Desk } from './desk.ts';

/** Where a message stands in a chain of answers. */
export interface Chain {
  hops: number;
  /** The first message's id on the wire; undefined at the start of a chain. */
  root_id: string | undefined;
}

/**
 * One hop more than the message that caused it: the one it answers, else the mail that was taken in during a turn that a bell started.
 * What is sent in a turn that a person's prompt started, or where no message caused it, stands at the start of a chain.
 */
export function chainOf(
  tx: Tx,
  desk: Pick<Desk, 'lastPromptMs'>,
  replyTo: string | undefined,
  { session }: Caller,
): Chain {
  const answered = causeOf(tx, desk, replyTo, session);
  if (answered === undefined) return { hops: 0, root_id: undefined };
  const { message_id, hops = 0 } = answered.message;
  return { hops: hops + 1, root_id: answered.root_id ?? rootOf(message_id) };
}

function causeOf(
  tx: Tx,
  desk: Pick<Desk, 'lastPromptMs'>,
  replyTo: string | undefined,
  session: string | undefined,
): StoredMessage | undefined {
  const answered = replyTo === undefined ? undefined : tx.messages.byId(replyTo);
  if (session === undefined || desk.lastPromptMs === undefined) return answered;
  const ids = tx.identity.chain(session);
  const promptMs = desk.lastPromptMs(ids);
  // Without the hook that notes prompts, only what a message answers counts.
  if (promptMs === undefined) return answered;
  const [rungMs] = tx.notices.rings(ids[0] as string, 1);
  if (rungMs === undefined || rungMs <= promptMs) return undefined;
  return answered ?? tx.messages.newestTakenIn(ids, new Date(rungMs).toISOString());
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
