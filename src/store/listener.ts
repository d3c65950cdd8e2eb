import type { Listener, ListenerRow } from '../ports/ringing.ts';
import { type Database, literal } from './database.ts';
import { coversOpen, isOpen } from './inbox.ts';

/** Whether the notice of a row `l` covers anything that waits and that the host was not told of within `:current`. */
const coversUntold = `EXISTS (
  SELECT 1 FROM reservation_cover v JOIN delivery d ON d.delivery_id = v.delivery_id
  WHERE v.notification_id = l.notification_id AND ${isOpen} AND NOT EXISTS (
    SELECT 1 FROM reservation_cover t
    WHERE t.delivery_id = v.delivery_id AND t.notification_id = :current AND t.told = 1))`;

/** @param now the moment, as stored times are written */
export function listener(database: Database, now: () => string): Listener {
  return {
    append: (row) => {
      database.run(
        'INSERT INTO listener_row (session_id, notification_id, text, created_at, kind) VALUES (?, ?, ?, ?, ?)',
        row.session_id,
        row.notification_id,
        row.text,
        row.created_at,
        row.kind ?? 'mail',
      );
    },
    rows: (ids, position, count, current) =>
      database
        .all(
          `SELECT l.seq, l.notification_id, l.text, ${coversUntold} AS waiting,
             l.kind = 'pairing' AS pairing, l.kind <> 'pairing' AND
             NOT EXISTS (SELECT 1 FROM reservation n WHERE n.notification_id = l.notification_id) AS whole
           FROM listener_row l WHERE l.session_id IN (SELECT value FROM json_each(:ids)) AND l.seq > :position
           ORDER BY l.seq LIMIT ${literal(count)}`,
          { ids: JSON.stringify(ids), position, current: current ?? null, now: now() },
        )
        .map(
          ({ waiting, whole, pairing, ...row }) =>
            ({
              ...row,
              waiting: waiting === 1,
              whole: whole === 1,
              pairing: pairing === 1,
            }) as unknown as ListenerRow,
        ),
    cursor: (root) =>
      (database.get('SELECT position FROM listener_cursor WHERE session_root = ?', root)?.position ??
        0) as number,
    setCursor: (root, position, prints) => {
      database.run(
        `INSERT INTO listener_cursor (session_root, position, prints) VALUES (?, ?, ?)
         ON CONFLICT (session_root) DO UPDATE SET position = max(position, excluded.position), prints = excluded.prints`,
        root,
        position,
        JSON.stringify(prints),
      );
    },
    prints: (root) =>
      JSON.parse(
        (database.get('SELECT prints FROM listener_cursor WHERE session_root = ?', root)?.prints ??
          '[]') as string,
      ) as number[],
    prune: (ids, position, before) => {
      database.run(
        `DELETE FROM listener_row AS l WHERE l.session_id IN (SELECT value FROM json_each(:ids))
           AND l.seq <= :position AND l.created_at < :before AND NOT ${coversOpen('l.notification_id')}`,
        { ids: JSON.stringify(ids), position, before, now: now() },
      );
    },
  };
}
