import type { Tx } from '../ports/store.ts';
import { type DeliveryState, deliveryState } from '../protocol/states.ts';

/** The projection of a delivery's facts as they stand in this snapshot. */
export function deliveryStateOf(tx: Tx, deliveryId: string): DeliveryState {
  return deliveryState({
    acknowledged: tx.receipts.has(deliveryId, 'ack'),
    waiting: tx.messages.byDelivery(deliveryId)?.waiting ?? false,
    handOff: tx.notices.handOffOf(deliveryId),
  });
}
