// One receipt of a recipient's own call: idempotent under its key, exact in its scope. No fact implies another.

import type { Tx } from '../ports/store.ts';
import { isRefusal, Refusal, type Result } from '../protocol/errors.ts';
import { type Message, sessionMeant } from '../protocol/message.ts';
import type { MessageReceipt, MessageReceiptKind } from '../protocol/receipts.ts';
import { type Caller, type Desk, newId, timestamp } from './desk.ts';

export interface NewFact {
  kind: MessageReceiptKind;
  value: string;
  idempotency_key: string;
  host_accept_id?: string;
  detail?: string;
}

/** Writes the receipt, or answers the one that the key already names. */
export function record(
  tx: Tx,
  desk: Desk,
  message: Message,
  caller: Caller,
  fact: NewFact,
): Result<MessageReceipt> {
  const detail = fact.detail ?? (caller.sub_agent && `by the sub-agent ${caller.sub_agent}`);
  const earlier = tx.receipts.find(message.delivery_id, fact.kind, fact.idempotency_key);
  if (earlier !== undefined) {
    const same =
      earlier.value === fact.value &&
      earlier.host_accept_id === fact.host_accept_id &&
      earlier.detail === detail;
    if (same) return earlier;
    return new Refusal('idempotency_conflict', 'this idempotency_key was used for other content', {
      field: 'idempotency_key',
      receipt_id: earlier.receipt_id,
    });
  }
  const receipt: MessageReceipt = {
    receipt_id: newId(desk, 'rcp'),
    receipt_kind: fact.kind,
    value: fact.value,
    source: 'receipt',
    actor: message.recipient,
    idempotency_key: fact.idempotency_key,
    ...(caller.session !== undefined && { caller_session: caller.session }),
    ...(fact.host_accept_id !== undefined && { host_accept_id: fact.host_accept_id }),
    ...(detail !== undefined && { detail }),
    recorded_at: timestamp(desk),
  };
  const { source: _, ...row } = receipt;
  tx.receipts.insert({ ...row, delivery_id: message.delivery_id }, newId(desk, 'evt'));
  return receipt;
}

/** Refuses intake by a caller that is not the session the message is meant for. */
export function checkMeant(tx: Tx, message: Message, caller: Caller): Refusal | undefined {
  const refusal = (): Refusal =>
    new Refusal('intended_for_other_session', 'this message is meant for another session; it stays waiting', {
      message_id: message.message_id,
    });
  const { session } = caller;
  const meant = sessionMeant(message);
  if (meant === undefined) return undefined;
  if (session !== undefined && tx.identity.chain(session).includes(meant)) return undefined;
  if (message.target_kind === 'principal') return refusal();
  const known =
    session !== undefined &&
    tx.sessions.registered(message.project, tx.identity.chain(session)) !== undefined;
  return known ? refusal() : undefined;
}

/** A result of one transaction that may have ended waiting: others are woken to look again. */
export async function recorded<T>(desk: Desk, work: (tx: Tx) => Result<T>): Promise<Result<T>> {
  const result = await desk.store.write(work);
  if (!isRefusal(result)) desk.wake.touch();
  return result;
}
