import type { Tx } from '../ports/store.ts';
import type { FactKind } from '../protocol/receipts.ts';
import { type DeliveryState, deliveryState, sentState } from '../protocol/states.ts';

/** The projection of a delivery's facts as they stand in this snapshot. */
export function deliveryStateOf(tx: Tx, deliveryId: string): DeliveryState {
  const stored = tx.messages.byDelivery(deliveryId);
  const has = (kind: FactKind): boolean => tx.receipts.has(deliveryId, kind);
  if (stored?.message.peer !== undefined)
    return sentState({ acknowledged: has('ack'), stored: has('stored'), relayed: has('relay_accept') });
  return deliveryState({
    acknowledged: has('ack'),
    waiting: stored?.waiting ?? false,
    handOff: tx.notices.handOffOf(deliveryId),
  });
}
