// Ids of messages as the two sides of a link know them: an answer names the message by the id that its own sender gave it.

import type { Tx } from '../ports/store.ts';

/** The local message that a peer means; undefined where none was exchanged with it. */
export function localReplyTo(tx: Tx, peerKey: string, wireId: string): string | undefined {
  const sent = tx.outbox.byWireId(wireId);
  if (sent?.peer_key === peerKey) return sent.message_id;
  return tx.messages.byOrigin(peerKey, wireId)?.message.message_id;
}

/** What the peer knows a local message by; undefined where it was not exchanged with it: then it is not sent. */
export function wireReplyTo(tx: Tx, peerKey: string, messageId: string): string | undefined {
  const sent = tx.outbox.of(messageId);
  if (sent !== undefined) return sent.peer_key === peerKey ? sent.wire_id : undefined;
  const origin = tx.messages.byId(messageId)?.message.origin;
  return origin?.sender_key === peerKey ? origin.message_id : undefined;
}
