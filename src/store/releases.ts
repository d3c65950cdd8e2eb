import type { HostPlace, ReleaseRow, Releases } from '../ports/releases.ts';
import { limits } from '../protocol/limits.ts';
import type { Database } from './database.ts';

const columns = 'delivery_id, session_id, thread_id, submission_id, checks, next_check_ms, ends_ms';

export function releases(database: Database): Releases {
  return {
    place: (sessionIds) =>
      database.get(
        `SELECT program, home FROM host_place WHERE session_id IN (SELECT value FROM json_each(?))
         ORDER BY recorded_at DESC LIMIT 1`,
        JSON.stringify(sessionIds),
      ) as HostPlace | undefined,
    recordPlace: ({ session_id, program, home, recorded_at }) => {
      database.run(
        'INSERT OR REPLACE INTO host_place VALUES (?, ?, ?, ?)',
        session_id,
        program,
        home,
        recorded_at,
      );
    },
    open: (row) => {
      database.run(
        `INSERT OR IGNORE INTO queue_release (delivery_id, session_id, thread_id, submission_id, next_check_ms, ends_ms)
         VALUES (?, ?, ?, ?, ?, ?)`,
        row.delivery_id,
        row.session_id,
        row.thread_id,
        row.submission_id,
        row.next_check_ms,
        row.ends_ms,
      );
    },
    byDelivery: (deliveryId) =>
      database.get(`SELECT ${columns} FROM queue_release WHERE delivery_id = ?`, deliveryId) as
        | ReleaseRow
        | undefined,
    due: (nowMs, count) =>
      database.all(
        `SELECT ${columns} FROM queue_release WHERE next_check_ms <= ? OR next_check_ms > ?
         ORDER BY next_check_ms LIMIT ?`,
        nowMs,
        nowMs + limits.releaseEveryMs,
        count,
      ) as unknown as ReleaseRow[],
    checked: (deliveryId, nextCheckMs) => {
      database.run(
        'UPDATE queue_release SET checks = checks + 1, next_check_ms = ? WHERE delivery_id = ?',
        nextCheckMs,
        deliveryId,
      );
    },
    end: (deliveryId) => {
      database.run('DELETE FROM queue_release WHERE delivery_id = ?', deliveryId);
    },
    isSubmission: (submissionId) =>
      database.get(
        `SELECT 1 AS found FROM host_accept
         WHERE adapter_kind = 'codex-queue' AND receipt ->> '$.submission_id' = ? LIMIT 1`,
        submissionId,
      ) !== undefined,
  };
}
