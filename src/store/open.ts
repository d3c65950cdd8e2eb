// Opens the store. Durability is set here and read back: the driver's own default is synchronous=NORMAL on all
// connections but the first, and then an answered send could be lost with the power.

import BetterSqlite3 from 'better-sqlite3';
import type { Clock } from '../ports/clock.ts';
import type { Random } from '../ports/random.ts';
import type { Store, Tx } from '../ports/store.ts';
import { assert } from '../protocol/assert.ts';
import { Fault } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import { attempts } from './attempts.ts';
import { Database, isBusy, storeFault } from './database.ts';
import { devices } from './devices.ts';
import { factsOut, linkRecords } from './facts-out.ts';
import { failures } from './failures.ts';
import { fallbacks } from './fallbacks.ts';
import { feed } from './feed.ts';
import { gate } from './gate.ts';
import { groupCommits } from './group.ts';
import { identity } from './identity.ts';
import { listener } from './listener.ts';
import { messages } from './messages.ts';
import { migrate, needsMigration } from './migrate.ts';
import { notices } from './notices.ts';
import { outbox } from './outbox.ts';
import { pairing } from './pairing.ts';
import { places } from './places.ts';
import { createPrivateFile } from './private-file.ts';
import { receipts } from './receipts.ts';
import { releases } from './releases.ts';
import { reminders } from './reminders.ts';
import { routers } from './routers.ts';
import { sessions } from './sessions.ts';
import { tasks } from './tasks.ts';
import { waiting } from './waiting.ts';

/** Before 3.51.3, SQLite could lose a reset of the WAL under several connections. */
const sqliteVersionMin = [3, 51, 3] as const;

/** One try inside SQLite; short, since it stops the whole process. The rest of the wait is ours. */
export const busyTimeoutMs = 5;
const retryMsMin = 2;
const retryMsMax = 25;

export interface StoreOptions {
  path: string;
  clock: Clock;
  random: Random;
  /** How long a writer waits for the lock. */
  lockWaitMs?: number;
  /** For a process that writes for many: writes of one turn of the event loop share a commit. */
  groupCommits?: boolean;
}

/** Opens the store at `path`, makes and migrates it where needed. Fault as `Store.write`. */
export async function openStore(options: StoreOptions): Promise<Store> {
  const { path } = options;
  createPrivateFile(path);
  const database = connect(path);
  try {
    await patiently(options, () => setUp(database, path));
    const store = storeOver(database, options);
    const old = await patiently(options, () => needsMigration(database, path));
    if (old) await store.write(() => migrate(database));
    return store;
  } catch (error) {
    database.close();
    throw storeFault(error, path);
  }
}

function connect(path: string): Database {
  try {
    return new Database(new BetterSqlite3(path, { timeout: busyTimeoutMs }));
  } catch (error) {
    throw storeFault(error, path);
  }
}

/** Any statement here may find the store locked: by another that makes it this very moment, or ends as its last user. */
function setUp(database: Database, path: string): void {
  checkVersion(database);
  // Before anything is written: what is no store of ours is left as it is.
  needsMigration(database, path);
  const isWal = database.pragma('journal_mode') === 'wal' || database.pragma('journal_mode = WAL') === 'wal';
  if (!isWal) throw new Fault('store_unreadable', `the store cannot be put in WAL mode: ${path}`);
  database.pragma('synchronous = FULL');
  database.pragma('foreign_keys = ON');
  assert(database.pragma('synchronous') === 2, 'synchronous is FULL on every connection');
}

/** Tries again while another connection holds the lock, without blocking the process. Fault `store_busy` at the end. */
export async function patiently<T>(
  { path, clock, random, lockWaitMs }: StoreOptions,
  work: () => T,
): Promise<T> {
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

function aggregates(database: Database, clock: Clock): Tx {
  const now = (): string => new Date(clock.nowMs()).toISOString();
  return {
    messages: messages(database, now),
    waiting: waiting(database, now),
    reminders: reminders(database, now),
    receipts: receipts(database),
    sessions: sessions(database),
    attempts: attempts(database),
    notices: notices(database, now),
    listener: listener(database, now),
    identity: identity(database),
    feed: feed(database),
    tasks: tasks(database),
    fallbacks: fallbacks(database),
    failures: failures(database),
    routers: routers(database),
    releases: releases(database),
    places: places(database),
    devices: devices(database),
    gate: gate(database),
    outbox: outbox(database),
    factsOut: factsOut(database),
    linkRecords: linkRecords(database),
    pairing: pairing(database),
  };
}

/** The port over one connection. */
export function storeOver(database: Database, options: StoreOptions): Store {
  const { path } = options;
  const tx = aggregates(database, options.clock);
  let seenVersion: unknown;

  const within = <T>(begin: string, work: (tx: Tx) => T): T => {
    database.run(begin);
    try {
      const value = work(tx);
      database.run('COMMIT');
      return value;
    } catch (error) {
      rollback(database);
      throw error;
    }
  };

  const transact = <T>(work: (tx: Tx) => T): Promise<T> =>
    patiently(options, () => within('BEGIN IMMEDIATE', work));

  return {
    read: (work) => {
      try {
        return within('BEGIN', work);
      } catch (error) {
        throw storeFault(error, path);
      }
    },
    write: options.groupCommits ? groupCommits(database, options, transact) : transact,
    changed: () => {
      const version = database.get('PRAGMA data_version')?.data_version;
      const changed = version !== seenVersion;
      seenVersion = version;
      return changed;
    },
    close: () => database.close(),
  };
}

/** A failed statement may have ended the transaction already; the first error is the one to report. */
function rollback(database: Database): void {
  try {
    database.run('ROLLBACK');
  } catch {
    // nothing was open
  }
}
