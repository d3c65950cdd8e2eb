// Numbered migrations, embedded at build. The version is SQLite's own user_version, looked at again under the write
// lock, so that two processes may race here.

import { Fault } from '../protocol/errors.ts';
import type { Database } from './database.ts';
import localMail from './sql/001-local-mail.sql';
import wholeMail from './sql/002-whole-mail.sql';
import meantMail from './sql/003-mail-meant-for-a-session.sql';
import stopGate from './sql/004-the-stop-gate.sql';
import codex from './sql/005-codex.sql';
import otherMachines from './sql/006-other-machines.sql';
import pairing from './sql/007-pairing.sql';

const migrations: readonly string[] = [
  localMail,
  wholeMail,
  meantMail,
  stopGate,
  codex,
  otherMachines,
  pairing,
];

/** The schema of this release. */
export const schemaKnown = migrations.length;

/** Whether the store must be written before it can be used. Fault where another program or a newer release made it. */
export function needsMigration(database: Database, path: string): boolean {
  // One statement, one snapshot: another process may make the store this very moment.
  const { version, tables, ours } = database.get(
    `SELECT user_version AS version, (SELECT count(*) FROM sqlite_schema) AS tables,
       (SELECT count(*) FROM sqlite_schema WHERE name IN ('message', 'delivery', 'idempotency')) AS ours
     FROM pragma_user_version`,
  ) as { version: number; tables: number; ours: number };
  if (version <= migrations.length && (version === 0 ? tables > 0 : ours < 3))
    throw new Fault(
      'store_unreadable',
      `the database is not one of Postbell, or has lost its version: ${path}`,
    );
  if (version > migrations.length)
    throw new Fault(
      'store_unreadable',
      `the store has schema ${version}, this release knows ${migrations.length}: ${path}`,
    );
  return version < migrations.length;
}

/** Brings the schema up to date. The caller holds a write transaction. */
export function migrate(database: Database): void {
  const version = database.pragma('user_version') as number;
  for (const [index, sql] of migrations.entries()) if (index >= version) database.script(sql);
  database.script(`PRAGMA user_version = ${Math.max(version, migrations.length)}`);
}
