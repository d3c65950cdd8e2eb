// Waiting for the answer to what was just sent. Nothing is taken in on the caller's behalf, and a wait that ends in
// vain takes nothing back.

import type { Tx } from '../ports/store.ts';
import type { Message } from '../protocol/message.ts';
import { nameOf } from '../protocol/scope.ts';
import type { Caller, Desk } from './desk.ts';
import { untilTouched } from './until-touched.ts';

export type Reply = Pick<Message, 'message_id' | 'project' | 'recipient' | 'target_kind'>;

/** The first message that answers `sent` and is for its sender; null where none came in time. */
export async function awaitReply(
  desk: Desk,
  sent: Message & { fallback?: { message_id: string } },
  caller: Caller,
  waitMs: number,
  ended?: AbortSignal,
): Promise<Reply | null> {
  const look = (): Reply | undefined => desk.store.read((tx) => replyTo(tx, sent, caller));
  const found = await untilTouched(desk, waitMs, look, ended);
  return found ?? null;
}

/** Where the send fell back, its session may see both copies and answer either. */
function replyTo(
  tx: Tx,
  sent: Message & { fallback?: { message_id: string } },
  caller: Caller,
): Reply | undefined {
  const sessions = caller.session === undefined ? [] : tx.identity.chain(caller.session);
  const principals = [nameOf(sent.sender)];
  const ids = [sent.message_id, ...(sent.fallback === undefined ? [] : [sent.fallback.message_id])];
  const [found] = ids.flatMap((id) => tx.messages.replyTo(sent.project, id, { principals, sessions }) ?? []);
  if (found === undefined) return undefined;
  const { message_id, project, recipient, target_kind } = found;
  return { message_id, project, recipient, target_kind };
}
