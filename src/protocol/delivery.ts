// A delivery is one message addressed to one recipient; facts belong to deliveries.

import type { Json } from './json.ts';
import type { Message } from './message.ts';
import type { FactKind } from './receipts.ts';

/** What fetch answers. */
export type FetchedMessage = Message & {
  payload: Json;
  payload_sha256: string;
  payload_tombstoned_at?: string;
  untrusted: true;
};

/** Names one inbound message to `acknowledge_messages`. `sender` is `local` for mail of this store. */
export interface ReceiptKey {
  sender: string;
  msg_id: string;
}

/** What the message is acknowledged by: the sender's own id for mail from another machine, the local id otherwise. */
export const receiptKeyOf = ({ origin, message_id }: Message): ReceiptKey =>
  origin === undefined
    ? { sender: 'local', msg_id: message_id }
    : { sender: origin.sender_key, msg_id: origin.message_id };

/** A message that a notice is about, as a host may be told which one it is. */
export type CoveredMessage = ReceiptKey &
  Pick<Message, 'project' | 'recipient' | 'target_kind' | 'message_id' | 'delivery_id'>;

/** One message as `receive_messages` answers it. */
export type ReceivedMessage = Message & { payload: Json; receipt: ReceiptKey; untrusted: true };

/** A payload-free record that a delivery became available. */
export interface MailEvent {
  event_id: string;
  event_kind: 'message_available';
  message_id: string;
  delivery_id: string;
  project: string;
  recipient: string;
  target_kind: Message['target_kind'];
  created_at: string;
}

/** A payload-free record that something was recorded about a message, for its sender. */
export interface ReceiptEvent {
  event_id: string;
  event_kind: 'receipt_recorded';
  message_id: string;
  receipt_kind: FactKind;
  value: string;
  recorded_at: string;
}

/** Why an exact session could not be reached; else the failure code of the attempt. */
export type UnavailableReason =
  | 'never_registered'
  | 'not_live'
  | 'replaced'
  | 'no_bell'
  | 'busy'
  | 'unsupported'
  | 'expired';

export interface NativeDelivery {
  status: 'native_accepted';
  delivery_id: string;
  adapter_kind: string;
  receipt: Json;
  accepted_at: string;
}

/** What an envelope says of a message beside its body: exactly these fields. */
function routingOf(message: Message) {
  const { privacy: _, quiet: __, expires_at: ___, hops: ____, peer: _____, ...routing } = message;
  return routing;
}

/** The complete native envelope: what a bell may show in full, and what the 16,384-byte limit measures. */
export function envelopeOf(message: Message, payload: Json) {
  return { type: 'postbell_message', ...routingOf(message), untrusted: true, payload } as const;
}

/** The envelope of a notice: the routing without the body. */
export function noticeEnvelopeOf(message: Message, notificationId: string) {
  return {
    type: 'postbell_message_notice',
    notification_id: notificationId,
    ...routingOf(message),
    untrusted: true,
  } as const;
}
