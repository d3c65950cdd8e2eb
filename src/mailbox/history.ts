// A conversation: both directions with one peer, in time order. Read-only, unless the caller asks to consume: then exactly
// the inbound messages that are returned are taken in and acknowledged, before they are returned.

import { keyBytes } from '../crypto/key-text.ts';
import { addressee } from '../peers/who.ts';
import type { HistoryRow } from '../ports/mail.ts';
import type { Tx } from '../ports/store.ts';
import { type ReceiptKey, receiptKeyOf } from '../protocol/delivery.ts';
import { isRefusal, type Result } from '../protocol/errors.ts';
import type { Json } from '../protocol/json.ts';
import { limits } from '../protocol/limits.ts';
import type { Message } from '../protocol/message.ts';
import type { HistoryRequest } from '../protocol/requests.ts';
import { nameOf } from '../protocol/scope.ts';
import type { DeliveryState } from '../protocol/states.ts';
import { consume } from './acknowledge.ts';
import type { Caller, Desk } from './desk.ts';
import { inboxOf } from './inbox.ts';
import { page } from './page.ts';
import { peerNames } from './peer-names.ts';
import { deliveryStateOf } from './state.ts';

export type HistoryMessage = Message & {
  direction: 'in' | 'out';
  delivery_state: DeliveryState;
  superseded_by?: string;
  payload: Json;
  receipt?: ReceiptKey;
  untrusted: true;
};

export interface HistoryAnswer {
  peer: string;
  messages: HistoryMessage[];
  /** How many of them this call was the first to acknowledge. */
  consumed: number;
  /** How many older ones within the limit did not fit into the answer; absent where none. */
  omitted?: number;
}

export async function history(
  desk: Desk,
  request: HistoryRequest,
  caller: Caller,
): Promise<Result<HistoryAnswer>> {
  const consuming = request.consume === true;
  const named = peerNames(desk);
  const work = (tx: Tx): Result<HistoryAnswer> => {
    const found = rowsOf(tx, desk, request, caller);
    if (isRefusal(found)) return found;
    const rows = page(tx, found, (row) => row.stored).reverse();
    const inbound = consuming ? rows.filter(([row]) => row.direction === 'in') : [];
    const consumed = inbound.filter(([row]) => consume(tx, desk, row.stored.message, caller)).length;
    const omitted = found.length - rows.length;
    const messages = rows.map(([row, payload]) => named(shown(tx, row, payload)));
    return { peer: request.peer, messages, consumed, ...(omitted > 0 && { omitted }) };
  };
  const answer = consuming ? await desk.store.write(work) : desk.store.read(work);
  if (!isRefusal(answer) && answer.consumed > 0) desk.wake.touch();
  return answer;
}

/** Newest first. */
function rowsOf(tx: Tx, desk: Desk, request: HistoryRequest, caller: Caller): Result<HistoryRow[]> {
  const inbox = inboxOf(tx, caller, request, desk.clock.nowMs());
  if (isRefusal(inbox)) return inbox;
  const sessions = caller.session === undefined ? [] : tx.identity.chain(caller.session);
  const senders = { labels: inbox.principals, sessions };
  const count = request.limit ?? limits.receiveCountDefault;
  return tx.messages.history(inbox, withWhom(desk, request.peer), senders, count);
}

/** A petname, `self`, a key, or somebody of this machine, in that order. Remote history goes by the key. */
function withWhom(desk: Desk, name: string): Parameters<Tx['messages']['history']>[1] {
  const peer = desk.account === undefined ? undefined : addressee(desk.account, name);
  if (peer !== undefined && !isRefusal(peer)) return { key: peer.key };
  return keyBytes(name) === undefined ? { label: name, recipient: nameOf(name) } : { key: name };
}

function shown(
  tx: Tx,
  { stored: { message, superseded_by }, direction }: HistoryRow,
  payload: Json,
): HistoryMessage {
  return {
    ...message,
    direction,
    delivery_state: deliveryStateOf(tx, message.delivery_id),
    ...(superseded_by !== undefined && { superseded_by }),
    payload,
    ...(direction === 'in' && { receipt: receiptKeyOf(message) }),
    untrusted: true,
  };
}
