// delivery_state is a projection of facts, computed when it is read and never stored.

export type DeliveryState =
  | 'receiver_acknowledged'
  | 'delivery_failed'
  | 'host_queued'
  | 'notification_sent'
  | 'inbox_queued'
  | 'receiver_stored';

/** How the newest hand-off that covers a delivery stands. */
export type HandOffState =
  | 'preparing'
  | 'inbox_queued'
  | 'notification_sent'
  | 'host_queued'
  | 'delivery_failed';

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
