import type { Acceptance, AttemptRow, Attempts } from '../ports/presence.ts';
import type { Database } from './database.ts';
import { instantOf } from './instant.ts';

const columns = 'attempt_id, delivery_id, connection_id, router_instance, state, failure_code';

export function attempts(database: Database): Attempts {
  return {
    start: (row) => {
      database.run(
        `INSERT INTO attempt (attempt_id, delivery_id, attempt_number, connection_id, router_instance, state, started_at)
         VALUES (:attempt_id, :delivery_id, (SELECT count(*) + 1 FROM attempt WHERE delivery_id = :delivery_id),
           :connection_id, :router_instance, 'started', :at)`,
        row,
      );
    },
    byId: (attemptId) =>
      database.get(`SELECT ${columns} FROM attempt WHERE attempt_id = ?`, attemptId) as
        | AttemptRow
        | undefined,
    finish: (attemptId, state, failureCode, at) => {
      database.run(
        `UPDATE attempt SET state = ?, failure_code = ?, finished_at = ? WHERE attempt_id = ? AND state = 'started'`,
        state,
        failureCode ?? null,
        at,
        attemptId,
      );
    },
    noteStop: (attemptId, reason) => {
      database.run('UPDATE attempt SET stop_reason = ? WHERE attempt_id = ?', reason, attemptId);
    },
    unfinishedOf: (connectionId) =>
      database.all(
        `SELECT ${columns} FROM attempt WHERE connection_id = ? AND state = 'started' ORDER BY seq`,
        connectionId,
      ) as unknown as AttemptRow[],
    accept: (row) => {
      database.run(
        `INSERT INTO host_accept (host_accept_id, delivery_id, attempt_id, content, adapter_kind, receipt, accepted_at)
         VALUES (?, ?, ?, ?, ?, ?, ?)`,
        row.host_accept_id,
        row.delivery_id,
        row.attempt_id,
        row.content,
        row.adapter_kind,
        row.receipt,
        row.accepted_at,
      );
    },
    acceptanceOf: (deliveryId) => {
      const row = database.get(
        `SELECT host_accept_id, delivery_id, attempt_id, content, adapter_kind, receipt, accepted_at
         FROM host_accept WHERE delivery_id = ?`,
        deliveryId,
      ) as Acceptance | undefined;
      return row && { ...row, accepted_at: instantOf(row.accepted_at) };
    },
    mayHaveReached: (deliveryId) =>
      database.get(
        `SELECT 1 FROM attempt WHERE delivery_id = ? AND state <> 'adapter_rejected' LIMIT 1`,
        deliveryId,
      ) !== undefined,
  };
}
