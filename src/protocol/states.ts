// delivery_state is a projection of facts, computed when it is read and never stored.

export type DeliveryState =
  | 'receiver_acknowledged'
  | 'delivery_failed'
  | 'host_queued'
  | 'notification_sent'
  | 'inbox_queued'
  | 'receiver_stored'
  | 'bus_accepted'
  | 'pending';

/** How the newest hand-off that covers a delivery stands. */
export type HandOffState =
  | 'preparing'
  | 'inbox_queued'
  | 'notification_sent'
  | 'host_queued'
  | 'delivery_failed';

/** Of a message to another machine: what is known here. A relay's acceptance says nothing of its receiver. */
export function sentState(facts: {
  acknowledged: boolean;
  stored: boolean;
  relayed: boolean;
}): DeliveryState {
  if (facts.acknowledged) return 'receiver_acknowledged';
  if (facts.stored) return 'receiver_stored';
  return facts.relayed ? 'bus_accepted' : 'pending';
}

/** First match wins; a hand-off counts only while the delivery still waits. */
export function deliveryState(facts: {
  acknowledged: boolean;
  waiting: boolean;
  handOff: HandOffState | undefined;
}): DeliveryState {
  if (facts.acknowledged) return 'receiver_acknowledged';
  if (facts.waiting && facts.handOff !== undefined && facts.handOff !== 'preparing') return facts.handOff;
  return 'receiver_stored';
}
