// Numbered migrations, embedded at build. The version is SQLite's own user_version, looked at again under the write
// lock, so that two processes may race here.

import { Fault } from '../protocol/errors.ts';
import type { Database } from './database.ts';

/** What one kind of store holds, version by version. */
export interface Schema {
  migrations: readonly string[];
  /** Tables that every version has: by them a store is known for ours. */
  tables: readonly string[];
}

/** Whether the store must be written before it can be used. Fault where another program or a newer release made it. */
export function isOlder(database: Database, { migrations, tables }: Schema, path: string): boolean {
  // One statement, one snapshot: another process may make the store this very moment.
  const found = database.get(
    `SELECT user_version AS version, (SELECT count(*) FROM sqlite_schema) AS tables,
       (SELECT count(*) FROM sqlite_schema WHERE name IN (SELECT value FROM json_each(?))) AS ours
     FROM pragma_user_version`,
    JSON.stringify(tables),
  ) as { version: number; tables: number; ours: number };
  const { version } = found;
  const known = migrations.length;
  if (version <= known && (version === 0 ? found.tables > 0 : found.ours < tables.length))
    throw new Fault(
      'store_unreadable',
      `the database is not one of Postbell, or has lost its version: ${path}`,
    );
  if (version > known)
    throw new Fault(
      'store_unreadable',
      `the store has schema ${version}, this release knows ${known}: ${path}`,
    );
  return version < known;
}

/** Brings the schema up to date. The caller holds a write transaction. */
export function bringUpToDate(database: Database, { migrations }: Schema): void {
  const version = database.pragma('user_version') as number;
  for (const [index, sql] of migrations.entries()) if (index >= version) database.script(sql);
  database.script(`PRAGMA user_version = ${Math.max(version, migrations.length)}`);
}
