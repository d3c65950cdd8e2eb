import type { FactRow, NewLinkFact, NewReceipt, Receipts } from '../ports/mail.ts';
import { limits } from '../protocol/limits.ts';
import type { MessageReceipt } from '../protocol/receipts.ts';
import type { Database, Row } from './database.ts';
import { instantOf } from './instant.ts';

/** Leaves out columns that hold nothing; times as they are returned. */
function present(row: Row): Record<string, unknown> {
  const fields = Object.entries(row).filter(([, value]) => value !== null);
  return Object.fromEntries(
    fields.map(([name, value]) => [name, name.endsWith('_at') ? instantOf(String(value)) : value]),
  );
}

const receiptColumns = `receipt_id, receipt_kind, value, source, actor, iif(source = 'receipt', idempotency_key, NULL) AS idempotency_key,
  caller_session, host_accept_id, detail, peer_key, peer_recorded_at, recorded_at`;

/** For whoever sent the message; `:event_id`, `:recorded_at`, `:receipt_id`, `:delivery_id`. */
const tellSender = `
  INSERT INTO event (event_id, event_kind, message_id, delivery_id, project, recipient, target_kind, created_at, receipt_id)
  SELECT :event_id, 'receipt_recorded', m.message_id, d.delivery_id, m.project, m.sender, 'principal', :recorded_at, :receipt_id
  FROM delivery d JOIN message m ON m.message_id = d.message_id WHERE d.delivery_id = :delivery_id`;

/** A peer is told what becomes of its message, in the transaction that records it. */
const tellPeer = `
  INSERT OR IGNORE INTO receipt_out (peer_key, device, wire_id, fact, detail, at_ms)
  SELECT m.peer_key, m.origin_device, m.origin_id, :fact, :detail, :at_ms
  FROM delivery d JOIN message m ON m.message_id = d.message_id
  WHERE d.delivery_id = :delivery_id AND m.peer_key IS NOT NULL`;

/** What a peer is told of, and in which words. */
function toldTo({ receipt_kind, value }: NewReceipt): { fact: string; detail: string } | undefined {
  if (receipt_kind === 'ack') return { fact: 'ack', detail: 'ack' };
  if (receipt_kind === 'intake' || receipt_kind === 'disposition')
    return { fact: receipt_kind, detail: value };
  return undefined;
}

const attemptFacts = `
  SELECT 'attempt' AS receipt_kind, a.state AS value, 'attempt' AS source, 'postbell-router' AS actor, a.attempt_id,
    a.attempt_number, a.connection_id, c.session_id, c.generation, a.failure_code, a.finished_at,
    a.started_at AS recorded_at
  FROM attempt a JOIN connection c ON c.connection_id = a.connection_id WHERE a.delivery_id = ? ORDER BY a.seq`;

const acceptFacts = `
  SELECT 'host_accept' AS receipt_kind, h.content AS value, 'host_accept' AS source, 'postbell-router' AS actor,
    h.host_accept_id, h.attempt_id, c.session_id, h.adapter_kind, h.receipt, h.accepted_at AS recorded_at
  FROM host_accept h JOIN attempt a ON a.attempt_id = h.attempt_id
  JOIN connection c ON c.connection_id = a.connection_id WHERE h.delivery_id = ?`;

export function receipts(database: Database): Receipts {
  return {
    find: (delivery, kind, key) => {
      const row = database.get(
        `SELECT ${receiptColumns} FROM receipt WHERE delivery_id = ? AND receipt_kind = ? AND idempotency_key = ?`,
        delivery,
        kind,
        key,
      );
      return row && (present(row) as unknown as MessageReceipt);
    },
    has: (delivery, kind) =>
      database.get(
        'SELECT 1 AS found FROM receipt WHERE delivery_id = ? AND receipt_kind = ?',
        delivery,
        kind,
      ) !== undefined,
    insert: (row, eventId) => {
      database.run(
        `INSERT INTO receipt (receipt_id, delivery_id, receipt_kind, idempotency_key, value, actor, caller_session,
           host_accept_id, detail, recorded_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        row.receipt_id,
        row.delivery_id,
        row.receipt_kind,
        row.idempotency_key,
        row.value,
        row.actor,
        row.caller_session ?? null,
        row.host_accept_id ?? null,
        row.detail ?? null,
        row.recorded_at,
      );
      const { delivery_id, recorded_at, receipt_id } = row;
      database.run(tellSender, { event_id: eventId, recorded_at, receipt_id, delivery_id });
      if (row.receipt_kind === 'intake')
        database.run('UPDATE delivery SET open = 0 WHERE delivery_id = ?', delivery_id);
      const told = toldTo(row);
      if (told !== undefined)
        database.run(tellPeer, { ...told, at_ms: Date.parse(recorded_at), delivery_id });
    },
    insertLinkFact: (row, eventId) => insertLinkFact(database, row, eventId),
    facts: (delivery) => [
      ...database.all(attemptFacts, delivery).map((row) => present(row) as unknown as FactRow),
      ...database
        .all(acceptFacts, delivery)
        .map(
          (row) => ({ ...present(row), receipt: JSON.parse(row.receipt as string) }) as unknown as FactRow,
        ),
      ...database
        .all(`SELECT ${receiptColumns} FROM receipt WHERE delivery_id = ? ORDER BY seq`, delivery)
        .map((row) => present(row) as unknown as FactRow),
    ],
  };
}

function insertLinkFact(database: Database, row: NewLinkFact, eventId: string): boolean {
  const { delivery_id, recorded_at, receipt_id } = row;
  const inserted = database.run(
    `INSERT OR IGNORE INTO receipt (receipt_id, delivery_id, receipt_kind, idempotency_key, value, actor, recorded_at,
           source, peer_key, peer_recorded_at)
         SELECT :receipt_id, :delivery_id, :receipt_kind, :idempotency_key, :value, :actor, :recorded_at, :source, :peer_key,
           :peer_recorded_at
         WHERE :source <> 'peer'
           OR (SELECT count(*) FROM receipt WHERE delivery_id = :delivery_id AND source = 'peer') < :most`,
    {
      receipt_id,
      delivery_id,
      receipt_kind: row.receipt_kind,
      idempotency_key: row.idempotency_key,
      value: row.value,
      actor: row.actor,
      recorded_at,
      source: row.source,
      peer_key: row.source === 'peer' ? row.peer_key : null,
      peer_recorded_at: row.source === 'peer' ? row.peer_recorded_at : null,
      most: limits.peerFactsMax,
    },
  );
  if (inserted === 0) return false;
  database.run(tellSender, { event_id: eventId, recorded_at, receipt_id, delivery_id });
  return true;
}
