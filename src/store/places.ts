import type { Places } from '../ports/peers.ts';
import type { Database } from './database.ts';

export function places(database: Database): Places {
  return {
    get: () => {
      const row = database.get('SELECT device, door FROM place');
      return row && { device: row.device as string, door: row.door as string };
    },
    set: ({ device, door }) => {
      database.run('INSERT OR REPLACE INTO place (one, device, door) VALUES (1, ?, ?)', device, door);
    },
    retire: (queueId, at) => {
      database.run('INSERT OR IGNORE INTO retired_queue (queue_id, retired_at) VALUES (?, ?)', queueId, at);
    },
    retired: () =>
      database
        .all('SELECT queue_id FROM retired_queue ORDER BY retired_at, queue_id')
        .map((row) => row.queue_id as string),
    retiredAt: (queueId) =>
      database.get('SELECT retired_at FROM retired_queue WHERE queue_id = ?', queueId)?.retired_at as
        | string
        | undefined,
    purged: (queueId) => {
      database.run('DELETE FROM retired_queue WHERE queue_id = ?', queueId);
    },
  };
}
