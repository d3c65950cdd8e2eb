import type { FactRow, Receipts } from '../ports/mail.ts';
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

const receiptColumns = `receipt_id, receipt_kind, value, 'receipt' AS source, actor, idempotency_key, caller_session,
  host_accept_id, detail, recorded_at`;

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
      database.run(
        `INSERT INTO event (event_id, event_kind, message_id, delivery_id, project, recipient, target_kind, created_at,
           receipt_id)
         SELECT ?, 'receipt_recorded', m.message_id, d.delivery_id, m.project, m.sender, 'principal', ?, ?
         FROM delivery d JOIN message m ON m.message_id = d.message_id WHERE d.delivery_id = ?`,
        eventId,
        row.recorded_at,
        row.receipt_id,
        row.delivery_id,
      );
      if (row.receipt_kind === 'intake')
        database.run('UPDATE delivery SET open = 0 WHERE delivery_id = ?', row.delivery_id);
    },
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
