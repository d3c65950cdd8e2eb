// The schema of this account's mail, version by version.

import type { Database } from './database.ts';
import { bringUpToDate, isOlder, type Schema } from './schema.ts';
import localMail from './sql/001-local-mail.sql';
import wholeMail from './sql/002-whole-mail.sql';
import meantMail from './sql/003-mail-meant-for-a-session.sql';
import stopGate from './sql/004-the-stop-gate.sql';
import codex from './sql/005-codex.sql';
import otherMachines from './sql/006-other-machines.sql';
import pairing from './sql/007-pairing.sql';
import chainsTooLong from './sql/008-chains-too-long.sql';
import recordsRepeated from './sql/009-records-repeated.sql';

const migrations: readonly string[] = [
  localMail,
  wholeMail,
  meantMail,
  stopGate,
  codex,
  otherMachines,
  pairing,
  chainsTooLong,
  recordsRepeated,
];

const schema: Schema = { migrations, tables: ['message', 'delivery', 'idempotency'] };

/** The schema of this release. */
export const schemaKnown = migrations.length;

/** Whether the store must be written before it can be used. Fault where another program or a newer release made it. */
export const needsMigration = (database: Database, path: string): boolean => isOlder(database, schema, path);

/** Brings the schema up to date. The caller holds a write transaction. */
export const migrate = (database: Database): void => bringUpToDate(database, schema);
