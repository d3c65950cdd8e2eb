import type { Identity, LauncherRow } from '../ports/store.ts';
import type { Database } from './database.ts';

/** UNION instead of UNION ALL ends on a cycle. */
const chainOf = `
  WITH RECURSIVE back (id, depth) AS (
    SELECT ?, 0 UNION SELECT a.old_id, depth + 1 FROM alias a JOIN back ON a.new_id = back.id WHERE depth < 1000),
  first (id) AS (SELECT id FROM back ORDER BY depth DESC LIMIT 1),
  forward (id, depth) AS (
    SELECT id, 0 FROM first UNION SELECT a.new_id, depth + 1 FROM alias a JOIN forward ON a.old_id = forward.id WHERE depth < 1000)
  SELECT id, min(depth) AS depth FROM (
    SELECT id, depth FROM forward UNION ALL SELECT id, 1000000 - depth AS depth FROM back) GROUP BY id ORDER BY depth`;

export function identity(database: Database): Identity {
  return {
    chain: (id) => database.all(chainOf, id).map((row) => row.id as string),
    link: (newId, oldId) => {
      if (newId !== oldId) database.run('INSERT OR IGNORE INTO alias VALUES (?, ?)', newId, oldId);
    },
    launcher: (pid) =>
      database.get('SELECT pid, start_time, session_id FROM launcher WHERE pid = ?', pid) as
        | LauncherRow
        | undefined,
    recordLauncher: (row, at) => {
      database.run(
        'INSERT OR REPLACE INTO launcher VALUES (?, ?, ?, ?)',
        row.pid,
        row.start_time,
        row.session_id,
        at,
      );
    },
  };
}
