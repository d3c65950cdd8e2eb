// Messages on their way to other machines: one row each, and how it stands at each relay.

import type { Outbox, OutboxPost, OutboxRow } from '../ports/peers.ts';
import { type Database, literal, type Row } from './database.ts';

const columns = `o.seq, o.message_id, o.peer_key, o.wire_id, o.secret, o.device, o.expires_ms, o.ended_at,
  (SELECT d.delivery_id FROM delivery d WHERE d.message_id = o.message_id) AS delivery_id`;
const postColumns =
  'p.message_id, p.relay, p.device, p.attempts, p.failures, p.accepts, p.next_ms, p.accepted_ms, p.parked, p.last_error';

const postOf = (row: Row): OutboxPost => ({ ...row, parked: row.parked === 1 }) as unknown as OutboxPost;

export function outbox(database: Database): Outbox {
  const rows = (where: string, ...parameters: (string | number)[]): OutboxRow[] =>
    database.all(`SELECT ${columns} FROM outbox o WHERE ${where}`, ...parameters) as unknown as OutboxRow[];
  return {
    insert: (row) => {
      database.run(
        `INSERT INTO outbox (message_id, peer_key, wire_id, secret, bytes, expires_ms)
         VALUES (:message_id, :peer_key, :wire_id, :secret, :bytes, :expires_ms)`,
        { ...row },
      );
    },
    of: (messageId) => rows('o.message_id = ?', messageId)[0],
    byWireId: (wireId) => rows('o.wire_id = ?', wireId)[0],
    totals: () =>
      database.get(
        'SELECT count(*) AS count, coalesce(sum(bytes), 0) AS bytes FROM outbox WHERE ended_at IS NULL',
      ) as { count: number; bytes: number },
    open: (count, peerKey) =>
      peerKey === undefined
        ? rows(`o.ended_at IS NULL ORDER BY o.seq LIMIT ${literal(count)}`)
        : rows(`o.ended_at IS NULL AND o.peer_key = ? ORDER BY o.seq LIMIT ${literal(count)}`, peerKey),
    peers: () =>
      database
        .all('SELECT DISTINCT peer_key FROM outbox WHERE ended_at IS NULL')
        .map((row) => row.peer_key as string),
    unrouted: (count, after) =>
      rows(
        `o.ended_at IS NULL AND o.seq > ? AND NOT EXISTS (SELECT 1 FROM outbox_post p WHERE p.message_id = o.message_id)
         ORDER BY o.seq LIMIT ${literal(count)}`,
        after,
      ),
    expired: (nowMs, count) =>
      rows(`o.ended_at IS NULL AND o.expires_ms <= ? ORDER BY o.expires_ms LIMIT ${literal(count)}`, nowMs),
    route: (messageId, device) => {
      database.run('UPDATE outbox SET device = ? WHERE message_id = ?', device, messageId);
    },
    end: (messageId, at) => {
      database.run('UPDATE outbox SET ended_at = ? WHERE message_id = ?', at, messageId);
      database.run('UPDATE outbox_post SET next_ms = NULL WHERE message_id = ?', messageId);
    },
    ...posts(database),
    unanswered: (sinceMs, count) =>
      database
        .all(
          `SELECT peer_key, device, json_group_array(wire_id) AS ids FROM (
             SELECT o.peer_key, o.device, o.wire_id, row_number() OVER (PARTITION BY o.peer_key, o.device ORDER BY o.seq DESC) AS nth
             FROM outbox o JOIN message m ON m.message_id = o.message_id JOIN delivery d ON d.message_id = o.message_id
             WHERE o.device IS NOT NULL AND m.created_at > :since
               AND EXISTS (SELECT 1 FROM receipt r WHERE r.delivery_id = d.delivery_id AND r.receipt_kind = 'stored')
               AND NOT EXISTS (SELECT 1 FROM receipt r WHERE r.delivery_id = d.delivery_id AND r.receipt_kind = 'ack'))
           WHERE nth <= :count GROUP BY peer_key, device`,
          { since: new Date(sinceMs).toISOString(), count },
        )
        .map(({ peer_key, device, ids }) => ({
          peer_key: peer_key as string,
          device: device as string,
          wire_ids: JSON.parse(ids as string) as string[],
        })),
    pending: (count) =>
      rows(
        `o.ended_at IS NULL AND NOT EXISTS
           (SELECT 1 FROM outbox_post p WHERE p.message_id = o.message_id AND p.accepted_ms IS NOT NULL)
         ORDER BY o.seq LIMIT ${literal(count)}`,
      ),
  };
}

/** By an older one for the same queue that this relay did not take and that is not to be tried again yet. */
const heldUp = `
  SELECT 1 FROM outbox_post q JOIN outbox x ON x.message_id = q.message_id
  WHERE q.relay = p.relay AND q.device = p.device AND q.accepted_ms IS NULL AND q.parked = 0 AND q.next_ms > :nowMs
    AND x.peer_key = o.peer_key AND x.seq < o.seq`;

type Posts = Pick<
  Outbox,
  'post' | 'posts' | 'putPost' | 'dropPosts' | 'due' | 'relays' | 'nextDueMs' | 'hurry' | 'hurryBeyond'
>;

function posts(database: Database): Posts {
  return {
    post: (messageId, relay) => {
      const row = database.get(
        `SELECT ${postColumns} FROM outbox_post p WHERE p.message_id = ? AND p.relay = ?`,
        messageId,
        relay,
      );
      return row && postOf(row);
    },
    posts: (messageId) =>
      database
        .all(`SELECT ${postColumns} FROM outbox_post p WHERE p.message_id = ? ORDER BY p.relay`, messageId)
        .map(postOf),
    putPost: (row) => {
      database.run(
        `INSERT OR REPLACE INTO outbox_post (message_id, relay, device, attempts, failures, accepts, next_ms, accepted_ms, parked, last_error)
         VALUES (:message_id, :relay, :device, :attempts, :failures, :accepts, :next_ms, :accepted_ms, :parked, :last_error)`,
        { ...row, parked: row.parked ? 1 : 0 },
      );
    },
    dropPosts: (messageId) => {
      database.run('DELETE FROM outbox_post WHERE message_id = ?', messageId);
    },
    due: (relay, nowMs, count) =>
      database
        .all(
          `SELECT ${columns}, ${postColumns} FROM outbox_post p JOIN outbox o ON o.message_id = p.message_id
           WHERE p.relay = :relay AND p.next_ms <= :nowMs AND o.expires_ms > :nowMs
             AND (p.accepted_ms IS NOT NULL OR p.parked = 1 OR NOT EXISTS (${heldUp}))
           ORDER BY o.seq LIMIT ${literal(count)}`,
          { relay, nowMs },
        )
        .map((row) => ({ ...(row as unknown as OutboxRow), ...postOf(row) })),
    relays: () =>
      database
        .all('SELECT DISTINCT relay FROM outbox_post WHERE next_ms IS NOT NULL')
        .map((row) => row.relay as string),
    nextDueMs: (relay, nowMs) =>
      database.get(
        `SELECT p.next_ms AS next FROM outbox_post p JOIN outbox o ON o.message_id = p.message_id
         WHERE p.relay = ? AND p.next_ms IS NOT NULL AND o.expires_ms > ? ORDER BY p.next_ms LIMIT 1`,
        relay,
        nowMs,
      )?.next as number | undefined,
    hurry: (peerKey, device, nowMs) => {
      database.run(
        `UPDATE outbox_post SET next_ms = :nowMs WHERE next_ms > :nowMs AND accepted_ms IS NOT NULL AND device = :device AND message_id IN
           (SELECT message_id FROM outbox WHERE peer_key = :peerKey AND ended_at IS NULL)`,
        { peerKey, device, nowMs },
      );
    },
    hurryBeyond: (beyondMs, nowMs) => {
      database.run('UPDATE outbox_post SET next_ms = ? WHERE next_ms > ?', nowMs, beyondMs);
    },
  };
}
