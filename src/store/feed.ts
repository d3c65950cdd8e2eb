// What happened since a position, table by table, for the live view. Payload-free.

import type { Feed, FeedItem, FeedPosition } from '../ports/feed.ts';
import type { Database } from './database.ts';
import { instantOf } from './instant.ts';

const countMax = 200;

const sources = {
  message: `
    SELECT m.seq, m.created_at AS at, 'message' AS kind, m.message_id, m.project, m.sender AS "from", d.recipient AS "to",
      coalesce(m.status, d.target_kind) AS detail, m.peer_key
    FROM message m JOIN delivery d ON d.message_id = m.message_id WHERE m.seq > ? ORDER BY m.seq LIMIT ?`,
  looped: `
    SELECT m.seq, e.created_at AS at, 'looped' AS kind, m.message_id, m.project, m.sender AS "from", d.recipient AS "to",
      m.hops AS detail, m.peer_key
    FROM message m JOIN delivery d ON d.message_id = m.message_id
    JOIN event e ON e.delivery_id = d.delivery_id AND e.event_kind = 'message_available'
    WHERE m.seq > ? AND m.hops > 31 AND m.peer_key IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM message f WHERE f.root_id = m.root_id AND f.hops > 31 AND f.seq < m.seq)
    ORDER BY m.seq LIMIT ?`,
  attempt: `
    SELECT a.seq, a.started_at AS at, 'attempt' AS kind, d.message_id, d.project, c.session_id AS "to", c.bell AS detail
    FROM attempt a JOIN delivery d ON d.delivery_id = a.delivery_id JOIN connection c ON c.connection_id = a.connection_id
    WHERE a.seq > ? ORDER BY a.seq LIMIT ?`,
  host_accept: `
    SELECT h.seq, h.accepted_at AS at, 'host_accept' AS kind, d.message_id, d.project, c.session_id AS "to",
      h.content || ' to ' || h.adapter_kind AS detail
    FROM host_accept h JOIN delivery d ON d.delivery_id = h.delivery_id JOIN attempt a ON a.attempt_id = h.attempt_id
    JOIN connection c ON c.connection_id = a.connection_id WHERE h.seq > ? ORDER BY h.seq LIMIT ?`,
  listener_row: `
    SELECT l.seq, l.created_at AS at, 'notice' AS kind, '' AS project, l.session_id AS "to",
      (SELECT count(*) FROM reservation_cover v WHERE v.notification_id = l.notification_id) ||
        iif(n.step = 0, '', ', reminder ' || n.step) AS detail
    FROM listener_row l JOIN reservation n ON n.notification_id = l.notification_id
    WHERE l.seq > ? ORDER BY l.seq LIMIT ?`,
  receipt: `
    SELECT r.seq, r.recorded_at AS at, r.receipt_kind AS kind, d.message_id, d.project, r.actor AS "to", r.value AS detail
    FROM receipt r JOIN delivery d ON d.delivery_id = r.delivery_id WHERE r.seq > ? ORDER BY r.seq LIMIT ?`,
  presence: `
    SELECT p.seq, p.recorded_at AS at, p.transition AS kind, c.project, c.principal_id AS "from", c.session_id AS "to",
      coalesce(p.reason, c.bell) AS detail
    FROM presence p JOIN connection c ON c.connection_id = p.connection_id WHERE p.seq > ? ORDER BY p.seq LIMIT ?`,
} as const satisfies Record<keyof FeedPosition, string>;

/** A chain that is too long is a kind of message, told apart. */
const tableOf = (source: keyof FeedPosition): string => (source === 'looped' ? 'message' : source);

const tables = Object.keys(sources) as (keyof FeedPosition)[];

export function feed(database: Database): Feed {
  return {
    end: () =>
      Object.fromEntries(
        tables.map((table) => [
          table,
          database.get(`SELECT coalesce(max(seq), 0) AS seq FROM ${tableOf(table)}`)?.seq as number,
        ]),
      ) as FeedPosition,
    since: (position) => {
      const next: Record<string, number> = { ...position };
      const items: FeedItem[] = [];
      for (const table of tables)
        for (const { seq, peer_key, ...item } of database.all(sources[table], position[table], countMax)) {
          next[table] = seq as number;
          items.push({
            ...(item as unknown as FeedItem),
            at: instantOf(item.at as string),
            ...(typeof peer_key === 'string' && { peer_key }),
          });
        }
      items.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0));
      return { items, position: next as FeedPosition };
    },
  };
}
