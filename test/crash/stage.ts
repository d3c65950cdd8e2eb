// A post office over a store whose every statement can be made to fail, or to be the last one before the process dies.
// Clock and randomness are the same in every run, so that what is written is the same too.

import { copyFileSync, existsSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import type { Desk } from '../../src/mailbox/desk.ts';
import type { Store } from '../../src/ports/store.ts';
import { dispatch } from '../../src/sessions/dispatch.ts';
import { Leases } from '../../src/sessions/leases.ts';
import type { HostOutcome, Switchboard } from '../../src/sessions/switchboard.ts';
import { Database } from '../../src/store/database.ts';
import { storeOver } from '../../src/store/open.ts';
import { FakeClock, seededRandom } from '../contract/clock.ts';
import { accepted, atEnd, RecordingWake } from '../contract/desk.ts';

/** Thrown where the process dies: nothing after it is run. */
export class Crash extends Error {}

const isControl = /^(BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE)/;
const isWrite = /^\s*(INSERT|UPDATE|DELETE)|^COMMIT/;

/** Counts statements, and stops at the chosen one. */
export class PointDatabase extends Database {
  /** Statements so far that may fail: all but those that begin or end a transaction. */
  statements = 0;
  /** Points at which a process may die: before each write and each commit, and after each commit. */
  writePoints = 0;
  failAt = 0;
  crashAt = 0;
  /** Called at the point of the crash, while the connection is as it is then. */
  onCrash = (): void => {};
  /** Whether a transaction was committed in which a statement had failed. */
  committedAfterFailure = false;
  #failed = false;
  #dead = false;

  override run(...call: Parameters<Database['run']>): number {
    return this.#at(call[0], () => super.run(...call));
  }

  override get(...call: Parameters<Database['get']>): ReturnType<Database['get']> {
    return this.#at(call[0], () => super.get(...call));
  }

  override all(...call: Parameters<Database['all']>): ReturnType<Database['all']> {
    return this.#at(call[0], () => super.all(...call));
  }

  #at<T>(sql: string, perform: () => T): T {
    if (this.#dead) throw new Crash('dead');
    if (isWrite.test(sql)) this.#point();
    if (sql.startsWith('BEGIN')) this.#failed = false;
    if (sql === 'COMMIT' && this.#failed) this.committedAfterFailure = true;
    if (!isControl.test(sql)) {
      this.statements += 1;
      if (this.statements === this.failAt) {
        this.#failed = true;
        const code = isWrite.test(sql) ? 'SQLITE_IOERR_WRITE' : 'SQLITE_IOERR_READ';
        throw Object.assign(new Error('disk I/O error'), { code });
      }
    }
    const value = perform();
    if (sql === 'COMMIT') this.#point();
    return value;
  }

  #point(): void {
    this.writePoints += 1;
    if (this.writePoints !== this.crashAt) return;
    this.onCrash();
    this.#dead = true;
    throw new Crash('killed');
  }
}

export interface Stage extends Desk {
  clock: FakeClock;
  wake: RecordingWake;
  database: PointDatabase;
  board: Switchboard;
  file: string;
  host: () => HostOutcome | Promise<HostOutcome>;
  /** Every row of every table, in order. */
  dump(): string;
}

/** A stage over `file`, which holds a migrated store. */
export function openStage(file: string, seed = 11): Stage {
  const database = new PointDatabase(new BetterSqlite3(file));
  const clock = new FakeClock();
  const random = seededRandom(seed);
  const wake = new RecordingWake();
  database.pragma('journal_mode = WAL');
  database.pragma('foreign_keys = ON');
  const store: Store = storeOver(database, { path: file, clock, random });
  atEnd(() => store.close());
  const stage: Stage = {
    store,
    clock,
    random,
    wake,
    database,
    file,
    host: () => accepted,
    router: {
      notify: ({ project, delivery_id }) => dispatch(stage.board, project, delivery_id),
      discover: async () => [],
    },
    board: {
      store,
      clock,
      random,
      wake,
      leases: new Leases(),
      instance: 'run_1',
      hostOutcomeWaitMs: 10_000,
      hand: async () => stage.host(),
    },
    dump: () => dumpOf(file),
  };
  return stage;
}

/** Everything that is committed in the store at `file`, as another process sees it. */
export function dumpOf(file: string): string {
  const reader = new BetterSqlite3(file, { readonly: true });
  try {
    const tables = reader
      .prepare(
        `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`,
      )
      .pluck()
      .all() as string[];
    return JSON.stringify(
      tables.map((name) => [name, reader.prepare(`SELECT * FROM "${name}" ORDER BY 1`).all()]),
    );
  } finally {
    reader.close();
  }
}

/** Main file and WAL as a process that dies leaves them; the shared memory is made anew by whoever comes next. */
export function copyStore(file: string, directory: string): string {
  mkdirSync(directory, { recursive: true });
  const copy = path.join(directory, 'postbell.db');
  copyFileSync(file, copy);
  if (existsSync(`${file}-wal`)) copyFileSync(`${file}-wal`, `${copy}-wal`);
  return copy;
}
