// A connection to a store. Durability is set here and read back: the driver's own default is synchronous=NORMAL on all
// connections but the first, and then an answered send could be lost with the power.

import BetterSqlite3 from 'better-sqlite3';
import type { Clock } from '../ports/clock.ts';
import type { Random } from '../ports/random.ts';
import { assert } from '../protocol/assert.ts';
import { Fault } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import { Database, isBusy, storeFault } from './database.ts';

/** Before 3.51.3, SQLite could lose a reset of the WAL under several connections. */
const sqliteVersionMin = [3, 51, 3] as const;

/** One try inside SQLite; short, since it stops the whole process. The rest of the wait is ours. */
export const busyTimeoutMs = 5;
const retryMsMin = 2;
const retryMsMax = 25;

/** Whose store waits for its lock, and how. */
export interface Patience {
  path: string;
  clock: Clock;
  random: Random;
  /** How long a writer waits for the lock. */
  lockWaitMs?: number;
}

export function connect(path: string): Database {
  try {
    return new Database(new BetterSqlite3(path, { timeout: busyTimeoutMs }));
  } catch (error) {
    throw storeFault(error, path);
  }
}

/** Fault `store_unreadable` where the file system has no WAL. */
export function setDurable(database: Database, path: string): void {
  const isWal = database.pragma('journal_mode') === 'wal' || database.pragma('journal_mode = WAL') === 'wal';
  if (!isWal) throw new Fault('store_unreadable', `the store cannot be put in WAL mode: ${path}`);
  database.pragma('synchronous = FULL');
  database.pragma('foreign_keys = ON');
  assert(database.pragma('synchronous') === 2, 'synchronous is FULL on every connection');
}

/** Tries again while another connection holds the lock, without blocking the process. Fault `store_busy` at the end. */
export async function patiently<T>({ path, clock, random, lockWaitMs }: Patience, work: () => T): Promise<T> {
  const deadline = clock.elapsedMs() + (lockWaitMs ?? limits.writeLockWaitMs);
  for (;;) {
    try {
      return work();
    } catch (error) {
      if (!isBusy(error) || clock.elapsedMs() >= deadline) throw storeFault(error, path);
    }
    const jitter = (random.bytes(1)[0] as number) / 255;
    await new Promise<void>((resolve) =>
      clock.after(retryMsMin + jitter * (retryMsMax - retryMsMin), resolve),
    );
  }
}

export function checkVersion(database: Database): void {
  const version = String(database.get('SELECT sqlite_version() AS version')?.version);
  if (!isFit(version))
    throw new Fault(
      'store_unreadable',
      `SQLite ${version} is too old; at least ${sqliteVersionMin.join('.')}`,
    );
}

/** Whether several connections of this SQLite may share a WAL. */
export function isFit(version: string): boolean {
  const number = ([major = 0, minor = 0, patch = 0]: readonly number[]): number =>
    major * 1_000_000 + minor * 1_000 + patch;
  return number(version.split('.').map(Number)) >= number(sqliteVersionMin);
}

/** Runs `work` in one transaction; a throw rolls back. */
export function transaction<T>(database: Database, begin: 'BEGIN' | 'BEGIN IMMEDIATE', work: () => T): T {
  database.run(begin);
  try {
    const value = work();
    database.run('COMMIT');
    return value;
  } catch (error) {
    rollback(database);
    throw error;
  }
}

/** A failed statement may have ended the transaction already; the first error is the one to report. */
function rollback(database: Database): void {
  try {
    database.run('ROLLBACK');
  } catch {
    // nothing was open
  }
}
