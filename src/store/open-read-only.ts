// Opens the store to look: nothing is made, migrated or written, and its files are afterwards what they were.

import { lstatSync, type Stats } from 'node:fs';
import BetterSqlite3 from 'better-sqlite3';
import type { Store } from '../ports/store.ts';
import { Fault } from '../protocol/errors.ts';
import { busyTimeoutMs, checkVersion, patiently } from './connection.ts';
import { Database, storeFault } from './database.ts';
import { needsMigration } from './migrate.ts';
import { type StoreOptions, storeOver } from './open.ts';

/**
 * The store at `path` for reading alone; undefined where there is no file, or nothing was ever made in it. Fault
 * `store_unreadable` where an older release made it: whoever writes next brings it up to date.
 */
export async function openStoreReadOnly(options: StoreOptions): Promise<Store | undefined> {
  const database = connectReadOnly(options.path);
  if (database === undefined) return undefined;
  try {
    const schema = await patiently(options, () => schemaOf(database, options.path));
    if (schema === 'none') {
      database.close();
      return undefined;
    }
    if (schema === 'older')
      throw new Fault(
        'store_unreadable',
        `the store has an older schema until a command writes to it: ${options.path}`,
      );
    return storeOver(database, options);
  } catch (error) {
    database.close();
    throw storeFault(error, options.path);
  }
}

function schemaOf(database: Database, path: string): 'none' | 'older' | 'current' {
  checkVersion(database);
  if (!needsMigration(database, path)) return 'current';
  return database.pragma('user_version') === 0 ? 'none' : 'older';
}

/**
 * A connection that refuses to write; undefined where there is no file. SQLite makes a WAL and its index for every reader,
 * and only one that may write removes them again: so the file is opened for writing, unless a WAL is there already. That
 * one belongs to others, or was left by a crash, and the end of such a connection would carry it into the store.
 */
export function connectReadOnly(path: string): Database | undefined {
  const found = look(path);
  if (found === undefined) return undefined;
  if (!found.isFile()) throw new Fault('insecure_path', `not a regular file: ${path}`);
  const readonly = [`${path}-wal`, `${path}-journal`].some((one) => look(one) !== undefined);
  try {
    const driver = new BetterSqlite3(path, { timeout: busyTimeoutMs, fileMustExist: true, readonly });
    driver.pragma('query_only = ON');
    return new Database(driver);
  } catch (error) {
    throw storeFault(error, path);
  }
}

function look(path: string): Stats | undefined {
  try {
    return lstatSync(path);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw new Fault('store_unreadable', `the store cannot be looked at (${code}): ${path}`, { cause });
  }
}
