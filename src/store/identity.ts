import type { Identity, LauncherRow } from '../ports/presence.ts';
import type { Database } from './database.ts';

/**
 * Every id that links lead to, in both directions; UNION ends on a cycle. An id was made of at most one other, so the
 * first of a chain is the one without a link of its own; in a cycle, the new id of its first link.
 */
const chainOf = `
  WITH RECURSIVE linked (id) AS (
    SELECT ?
    UNION SELECT a.old_id FROM alias a JOIN linked ON a.new_id = linked.id
    UNION SELECT a.new_id FROM alias a JOIN linked ON a.old_id = linked.id)
  SELECT id FROM linked LEFT JOIN alias ON alias.new_id = linked.id ORDER BY alias.rowid`;

export function identity(database: Database): Identity {
  const chain = (id: string): string[] => database.all(chainOf, id).map((row) => row.id as string);
  return {
    chain,
    link: (newId, oldId) => {
      if (newId === oldId) return;
      // An id was made of one other: where this one was already, the first of its chain is what gets the link.
      const [first = newId] = chain(newId);
      if (!chain(oldId).includes(first))
        database.run('INSERT OR IGNORE INTO alias VALUES (?, ?)', first, oldId);
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
