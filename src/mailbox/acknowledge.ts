// Hop 7 for a session: intake (ingested) and ack for exactly the receipts given, in one transaction. It records a
// consumption, not comprehension or completion.

import type { Tx } from '../ports/store.ts';
import type { ReceiptKey } from '../protocol/delivery.ts';
import { isRefusal, Refusal, type Result } from '../protocol/errors.ts';
import { isObject } from '../protocol/json.ts';
import { limits } from '../protocol/limits.ts';
import type { Message } from '../protocol/message.ts';
import type { AcknowledgeRequest } from '../protocol/requests.ts';
import { characters, isWellFormed } from '../protocol/scope.ts';
import type { Caller, Desk } from './desk.ts';
import { inboxOf } from './inbox.ts';
import { checkMeant, record, recorded } from './record.ts';

export interface AcknowledgeAnswer {
  /** Whose intake or acknowledgement this call was the first to record. */
  acknowledged: number;
  unchanged: number;
  refused: (ReceiptKey & { code: 'intended_for_other_session' })[];
}

export async function acknowledge(
  desk: Desk,
  request: AcknowledgeRequest,
  caller: Caller,
): Promise<Result<AcknowledgeAnswer>> {
  const keys = readReceiptKeys(request.messages);
  if (isRefusal(keys)) return keys;
  return recorded(desk, (tx) => {
    const inbox = inboxOf(tx, caller, request, desk.clock.nowMs());
    if (isRefusal(inbox)) return inbox;
    const ids = keys.flatMap((key) => localId(tx, key) ?? []);
    const mine = new Map(tx.waiting.among(inbox, ids).map((message) => [message.message_id, message]));
    const answer: AcknowledgeAnswer = { acknowledged: 0, unchanged: 0, refused: [] };
    for (const key of keys) {
      const id = localId(tx, key);
      const message = id === undefined ? undefined : mine.get(id);
      if (message !== undefined && consume(tx, desk, message, caller)) answer.acknowledged += 1;
      else if (message === undefined && isMeantForAnother(tx, key, inbox.project, inbox.principals, caller))
        answer.refused.push({ ...key, code: 'intended_for_other_session' });
      else answer.unchanged += 1;
    }
    return answer;
  });
}

/** The message that a receipt names: by its key alone, whatever its sender is called here. */
const localId = (tx: Tx, { sender, msg_id }: ReceiptKey): string | undefined =>
  sender === 'local' ? msg_id : tx.messages.byOrigin(sender, msg_id)?.message.message_id;

/** Intake and ack of one message; @returns whether anything was new. */
export function consume(tx: Tx, desk: Desk, message: Message, caller: Caller): boolean {
  const { delivery_id } = message;
  const idempotency_key = 'acknowledge_messages';
  const missing = (
    [
      { kind: 'intake', value: 'ingested', idempotency_key },
      { kind: 'ack', value: 'acknowledged', idempotency_key },
    ] as const
  ).filter(({ kind }) => !tx.receipts.has(delivery_id, kind));
  for (const fact of missing) record(tx, desk, message, caller, fact);
  return missing.length > 0;
}

/** Mail of the caller's principal that is intended for a sibling session is refused by name; the rest is unknown. */
function isMeantForAnother(
  tx: Tx,
  key: ReceiptKey,
  project: string,
  principals: readonly string[],
  caller: Caller,
): boolean {
  const id = localId(tx, key);
  const message = id === undefined ? undefined : tx.messages.byId(id)?.message;
  if (message === undefined || message.project !== project || !principals.includes(message.recipient))
    return false;
  return checkMeant(tx, message, caller) !== undefined;
}

function readReceiptKeys(list: readonly unknown[]): Result<ReceiptKey[]> {
  const field = 'messages';
  if (list.length < 1 || list.length > limits.acknowledgeCountMax)
    return new Refusal('invalid_request', `messages must hold 1 to ${limits.acknowledgeCountMax} receipts`, {
      field,
    });
  const keys: ReceiptKey[] = [];
  for (const item of list) {
    const fits = isObject(item) && Object.keys(item).length === 2 && isId(item.sender) && isId(item.msg_id);
    if (!fits)
      return new Refusal('invalid_request', 'each receipt must be {sender, msg_id}, verbatim as received', {
        field,
      });
    keys.push({ sender: item.sender as string, msg_id: item.msg_id as string });
  }
  return keys;
}

const isId = (value: unknown): boolean =>
  typeof value === 'string' && isWellFormed(value) && characters(value) <= limits.idCharactersMax;
