import type { FailureRow, Failures } from '../ports/ringing.ts';
import type { Database } from './database.ts';

const columns = 'id, session_root, kind, notification_id, message_id, sender, reason, text, recorded_at';

export function failures(database: Database): Failures {
  return {
    save: (row) => {
      if (row.kind === 'notice') clearSlot(database, row.session_root);
      database.run(
        `INSERT INTO failed_delivery (${columns}) VALUES (:id, :session_root, :kind, :notification_id, :message_id,
           :sender, :reason, :text, :recorded_at)`,
        { ...row },
      );
    },
    list: (root) =>
      database.all(
        `SELECT ${columns} FROM failed_delivery WHERE session_root = ? ORDER BY seq`,
        root,
      ) as unknown as FailureRow[],
    count: (root) =>
      database.get('SELECT count(*) AS n FROM failed_delivery WHERE session_root = ?', root)?.n as number,
    byId: (root, id) =>
      database.get(
        `SELECT ${columns} FROM failed_delivery WHERE session_root = ? AND id = ?`,
        root,
        id,
      ) as unknown as FailureRow | undefined,
    remove: (id) => {
      database.run('DELETE FROM failed_delivery WHERE id = ?', id);
    },
    clearSlot: (root) => clearSlot(database, root),
  };
}

function clearSlot(database: Database, root: string): void {
  database.run(`DELETE FROM failed_delivery WHERE session_root = ? AND kind = 'notice'`, root);
}
