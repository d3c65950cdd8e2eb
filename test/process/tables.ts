// A whole store, to be compared with itself.

import BetterSqlite3 from 'better-sqlite3';

/** Every row of every table. A connection for reading alone would leave its files beside the store. */
export function tablesOf(file: string): Record<string, unknown[]> {
  const store = new BetterSqlite3(file);
  const names = store
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")
    .pluck()
    .all() as string[];
  const rows = names.map((name) => [name, store.prepare(`SELECT * FROM ${name}`).all()] as const);
  store.close();
  return Object.fromEntries(rows) as Record<string, unknown[]>;
}
