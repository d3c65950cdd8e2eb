import type { FallbackRow, Fallbacks } from '../ports/mail.ts';
import type { Database } from './database.ts';

export function fallbacks(database: Database): Fallbacks {
  return {
    insert: (row) => {
      database.run(
        'INSERT INTO fallback VALUES (?, ?, ?)',
        row.delivery_id,
        row.refused_delivery_id,
        row.reason,
      );
    },
    byDelivery: (deliveryId) =>
      database.get(
        'SELECT delivery_id, refused_delivery_id, reason FROM fallback WHERE delivery_id = ?',
        deliveryId,
      ) as FallbackRow | undefined,
  };
}
