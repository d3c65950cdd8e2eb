// Facts that peers are still to be told, and what peers' mail counts for here.

import type { FactOut, FactsOut, InboxOwned, LinkRecords } from '../ports/peers.ts';
import { type Database, literal } from './database.ts';

export function factsOut(database: Database): FactsOut {
  return {
    add: (row) => {
      database.run(
        `INSERT OR IGNORE INTO receipt_out (peer_key, device, wire_id, fact, detail, at_ms)
         VALUES (:peer_key, :device, :wire_id, :fact, :detail, :at_ms)`,
        { ...row },
      );
    },
    destinations: () =>
      database.all('SELECT DISTINCT peer_key, device FROM receipt_out') as unknown as ReturnType<
        FactsOut['destinations']
      >,
    next: (peerKey, device, count) =>
      database.all(
        `SELECT seq, peer_key, device, wire_id, fact, detail, at_ms FROM receipt_out
         WHERE peer_key = ? AND device = ? ORDER BY seq LIMIT ${literal(count)}`,
        peerKey,
        device,
      ) as unknown as FactOut[],
    remove: (seqs) => {
      database.run(
        'DELETE FROM receipt_out WHERE seq IN (SELECT value FROM json_each(?))',
        JSON.stringify(seqs),
      );
    },
    drop: (of) => {
      if ('beforeMs' in of) database.run('DELETE FROM receipt_out WHERE at_ms < ?', of.beforeMs);
      else database.run('DELETE FROM receipt_out WHERE peer_key = ?', of.peer_key);
    },
  };
}

const has = (kind: 'ack' | 'intake'): string =>
  `EXISTS (SELECT 1 FROM receipt r WHERE r.delivery_id = l.delivery_id AND r.receipt_kind = '${kind}')`;

/** Of a record `l` with its delivery `d` and message `m`, at the moment `:at`: waits no more. */
const expired = '(d.expires_at IS NOT NULL AND d.expires_at <= :at)';
const hasExpired = `EXISTS (SELECT 1 FROM delivery d WHERE d.delivery_id = l.delivery_id AND ${expired})`;
const ended = `(d.open = 0 OR ${expired})`;

export function linkRecords(database: Database): LinkRecords {
  return {
    insert: (row) => {
      database.run('INSERT INTO link_record VALUES (:delivery_id, :peer_key, :owner, :bytes, :sent_ms)', {
        ...row,
      });
    },
    counted: (peerKey, owner, beforeMs, at) =>
      database.get(
        `SELECT count(*) AS count, coalesce(sum(l.bytes), 0) AS bytes
         FROM link_record l WHERE l.peer_key = :peerKey AND l.owner = :owner
           AND NOT (l.sent_ms < :beforeMs AND (${has('intake')} OR ${hasExpired}) AND NOT ${has('ack')})`,
        { peerKey, owner, beforeMs, at },
      ) as { count: number; bytes: number },
    adopt: (peerKey, { from, owner }, inbox) => {
      const { sessions = [], project = '', principal = '' }: Partial<InboxOwned> = inbox;
      database.run(
        `UPDATE link_record SET owner = :owner WHERE peer_key = :peerKey AND owner = :from AND EXISTS (
           SELECT 1 FROM delivery d WHERE d.delivery_id = link_record.delivery_id AND (
             (d.target_kind = 'session' AND d.recipient IN (SELECT value FROM json_each(:sessions)))
             OR d.intended_session IN (SELECT value FROM json_each(:sessions))
             OR (d.target_kind = 'principal' AND d.intended_session IS NULL AND d.project = :project
               AND d.recipient = :principal)))`,
        { peerKey, from, owner, sessions: JSON.stringify(sessions), project, principal },
      );
    },
    prune: (peerKey, owner, beforeMs, at) => {
      const of = { peerKey, owner, beforeMs, at };
      const old = `
        SELECT l.delivery_id FROM link_record l JOIN delivery d ON d.delivery_id = l.delivery_id
        WHERE l.peer_key = :peerKey AND l.owner = :owner AND l.sent_ms < :beforeMs AND ${ended}
          AND (${has('ack')} OR d.superseded_by IS NOT NULL)`;
      const { ids } = database.get(`SELECT json_group_array(delivery_id) AS ids FROM (${old})`, of) as {
        ids: string;
      };
      tombstone(database, ids, at);
    },
  };
}

/** Hash and size stay; the body goes. */
function tombstone(database: Database, deliveryIds: string, at: string): void {
  const those = `message_id IN (SELECT message_id FROM delivery WHERE delivery_id IN (SELECT value FROM json_each(:ids)))`;
  const ids = { ids: deliveryIds };
  database.run(
    `UPDATE storage SET payload_bytes = payload_bytes
       - (SELECT coalesce(sum(octet_length(payload)), 0) FROM message WHERE ${those})`,
    ids,
  );
  database.run(
    `UPDATE message SET tombstoned_at = :at, payload = json_object('tombstone', json('true'), 'algorithm', 'sha256',
       'original_bytes', octet_length(payload), 'sha256', payload_sha256) WHERE ${those}`,
    { ...ids, at },
  );
  database.run(
    `UPDATE storage SET payload_bytes = payload_bytes
       + (SELECT coalesce(sum(octet_length(payload)), 0) FROM message WHERE ${those})`,
    ids,
  );
  database.run('DELETE FROM link_record WHERE delivery_id IN (SELECT value FROM json_each(:ids))', ids);
}
