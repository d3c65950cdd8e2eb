// How one message stands, by its id alone: what came in with its body, what went out with every receipt so far.

import type { StoredMessage } from '../ports/mail.ts';
import type { Tx } from '../ports/store.ts';
import type { ReceiptKey } from '../protocol/delivery.ts';
import { isRefusal, Refusal, type Result } from '../protocol/errors.ts';
import type { Json } from '../protocol/json.ts';
import type { Message } from '../protocol/message.ts';
import type { Fact } from '../protocol/receipts.ts';
import type { StatusRequest } from '../protocol/requests.ts';
import type { DeliveryState } from '../protocol/states.ts';
import type { Caller, Desk } from './desk.ts';
import { inboxOf } from './inbox.ts';
import { peerNames } from './peer-names.ts';
import { factsOf } from './receipts.ts';
import { deliveryStateOf } from './state.ts';

export type StatusAnswer = Message & {
  direction: 'in' | 'out';
  delivery_state: DeliveryState;
  /** Whether the payload was replaced by its tombstone. */
  pruned: boolean;
  payload?: Json;
  /** The message that made it obsolete: it waits no more. */
  superseded_by?: string;
  receipts: Fact[];
  /** Of what went to another machine, while its receiver has not said that it acknowledged. */
  note?: 'receiver acknowledgement is unknown';
  untrusted: true;
};

/** Several machines gave a message this id: which is meant? */
export interface StatusCandidates {
  candidates: ReceiptKey[];
}

export function status(
  desk: Pick<Desk, 'store' | 'clock' | 'account'>,
  request: StatusRequest,
  caller: Caller,
): Result<StatusAnswer | StatusCandidates> {
  const named = peerNames(desk);
  return desk.store.read((tx) => {
    const found = findById(tx, request);
    if (isRefusal(found)) return found;
    if ('candidates' in found) return found;
    const { message } = found;
    const direction = directionOf(tx, desk, message, caller);
    if (direction === undefined) return unknown();
    const receipts = factsOf(tx, desk, found);
    const isUnknown =
      message.peer !== undefined && !receipts.some(({ receipt_kind }) => receipt_kind === 'ack');
    return {
      ...named(message),
      direction,
      delivery_state: deliveryStateOf(tx, message.delivery_id),
      pruned: found.tombstoned_at !== undefined,
      ...(found.superseded_by !== undefined && { superseded_by: found.superseded_by }),
      ...(direction === 'in' && {
        payload: JSON.parse(tx.messages.payload(message.message_id).json) as Json,
      }),
      receipts,
      ...(isUnknown && { note: 'receiver acknowledgement is unknown' as const }),
      untrusted: true,
    };
  });
}

const unknown = (): Refusal =>
  new Refusal('not_found', 'no message of that id is yours', { field: 'msg_id' });
const candidatesMax = 16;

/** A local id, or the id that its sender on another machine gave it. */
function findById(
  tx: Tx,
  { msg_id, sender }: StatusRequest,
): Result<StoredMessage | { candidates: ReceiptKey[] }> {
  if (sender !== undefined && sender !== 'local') return tx.messages.byOrigin(sender, msg_id) ?? unknown();
  const local = tx.messages.byId(msg_id);
  if (local !== undefined || sender === 'local') return local ?? unknown();
  const keys = tx.messages.originsOf(msg_id, candidatesMax);
  if (keys.length > 1) return { candidates: keys.map((key) => ({ sender: key, msg_id })) };
  const [key] = keys;
  return (key === undefined ? undefined : tx.messages.byOrigin(key, msg_id)) ?? unknown();
}

/** Undefined where it is neither to nor from the caller. A caller without a session looks at it as its sender. */
function directionOf(
  tx: Tx,
  desk: Pick<Desk, 'clock'>,
  message: Message,
  caller: Caller,
): 'in' | 'out' | undefined {
  if (caller.session === undefined) return message.origin === undefined ? 'out' : 'in';
  const inbox = inboxOf(tx, caller, { project: message.project }, desk.clock.nowMs());
  if (isRefusal(inbox)) return undefined;
  if (tx.waiting.among(inbox, [message.message_id]).length > 0) return 'in';
  const { session } = message.provenance;
  if (message.origin !== undefined) return undefined;
  const sent =
    inbox.principals.includes(message.sender) || (session !== undefined && inbox.targets.includes(session));
  return sent ? 'out' : undefined;
}
