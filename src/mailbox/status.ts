// How one message stands, by its id alone: what came in with its body, what went out with every receipt so far.

import type { Tx } from '../ports/store.ts';
import { isRefusal, Refusal, type Result } from '../protocol/errors.ts';
import type { Json } from '../protocol/json.ts';
import type { Message } from '../protocol/message.ts';
import type { Fact } from '../protocol/receipts.ts';
import type { StatusRequest } from '../protocol/requests.ts';
import type { DeliveryState } from '../protocol/states.ts';
import type { Caller, Desk } from './desk.ts';
import { inboxOf } from './inbox.ts';
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
  untrusted: true;
};

export function status(
  desk: Pick<Desk, 'store' | 'clock'>,
  request: StatusRequest,
  caller: Caller,
): Result<StatusAnswer> {
  const { msg_id, sender = 'local' } = request;
  return desk.store.read((tx) => {
    const stored = sender === 'local' ? tx.messages.byId(msg_id) : undefined;
    const direction = stored && directionOf(tx, desk, stored.message, caller);
    if (stored === undefined || direction === undefined)
      return new Refusal('not_found', 'no message of that id is yours', { field: 'msg_id' });
    const { message } = stored;
    return {
      ...message,
      direction,
      delivery_state: deliveryStateOf(tx, message.delivery_id),
      pruned: false,
      ...(stored.superseded_by !== undefined && { superseded_by: stored.superseded_by }),
      ...(direction === 'in' && { payload: JSON.parse(tx.messages.payload(msg_id).json) as Json }),
      receipts: factsOf(tx, desk, stored),
      untrusted: true,
    };
  });
}

/** Undefined where it is neither to nor from the caller. A caller without a session looks at it as its sender. */
function directionOf(
  tx: Tx,
  desk: Pick<Desk, 'clock'>,
  message: Message,
  caller: Caller,
): 'in' | 'out' | undefined {
  if (caller.session === undefined) return 'out';
  const inbox = inboxOf(tx, caller, { project: message.project }, desk.clock.nowMs());
  if (isRefusal(inbox)) return undefined;
  if (tx.waiting.among(inbox, [message.message_id]).length > 0) return 'in';
  const { session } = message.provenance;
  const sent =
    inbox.principals.includes(message.sender) || (session !== undefined && inbox.targets.includes(session));
  return sent ? 'out' : undefined;
}
