// One SQLite connection. Every statement is prepared once and kept: preparing anew for each send costs a quarter
// of the throughput.

import { accessSync, constants } from 'node:fs';
import { dirname } from 'node:path';
import type BetterSqlite3 from 'better-sqlite3';
import { assert } from '../protocol/assert.ts';
import { Fault } from '../protocol/errors.ts';

export type Row = Record<string, string | number | null>;
type Value = string | number | null | Uint8Array;
/** For `?` one after another, or one object for `:name`. */
type Parameter = Value | Readonly<Record<string, Value>>;

/** Statements by their text, on one connection. */
export class Database {
  readonly #driver: BetterSqlite3.Database;
  readonly #statements = new Map<string, BetterSqlite3.Statement>();

  constructor(driver: BetterSqlite3.Database) {
    this.#driver = driver;
  }

  run(sql: string, ...parameters: Parameter[]): number {
    return this.#prepare(sql).run(...parameters).changes;
  }

  /** The first row, or undefined. */
  get(sql: string, ...parameters: Parameter[]): Row | undefined {
    return this.#prepare(sql).get(...parameters) as Row | undefined;
  }

  all(sql: string, ...parameters: Parameter[]): Row[] {
    return this.#prepare(sql).all(...parameters) as Row[];
  }

  /** Several statements without parameters, as migrations are. */
  script(sql: string): void {
    this.#driver.exec(sql);
  }

  pragma(name: string): unknown {
    return this.#driver.pragma(name, { simple: true });
  }

  close(): void {
    this.#statements.clear();
    this.#driver.close();
  }

  #prepare(sql: string): BetterSqlite3.Statement {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#driver.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}

/**
 * A whole number as part of a statement. Beside an ORDER BY, a bound LIMIT makes SQLite sort in a temporary b-tree: 80 us
 * for an inbox of three messages, where a written one takes 29.
 */
export function literal(count: number): string {
  assert(Number.isSafeInteger(count) && count >= 0, 'a limit is a whole number');
  return String(count);
}

/** Whether the driver says that another connection holds the lock. */
export function isBusy(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' && /^SQLITE_(BUSY|LOCKED|PROTOCOL)/.test(code);
}

/** A driver's error as a Fault; anything else is returned as it is. */
export function storeFault(error: unknown, path: string): unknown {
  const code = (error as { code?: unknown } | null)?.code;
  if (error instanceof Fault || typeof code !== 'string' || !code.startsWith('SQLITE_')) return error;
  const fault = (kind: 'store_busy' | 'store_full' | 'store_unwritable' | 'store_unreadable', text: string) =>
    new Fault(kind, `${text}: ${path}`, { cause: error });
  if (isBusy(error)) return fault('store_busy', 'the store is locked by another process');
  // The latter where the index of the WAL, which a reader makes too, cannot be made as long as it must be.
  if (code === 'SQLITE_FULL' || code === 'SQLITE_IOERR_SHMSIZE')
    return fault('store_full', 'no space left for the store');
  const locked = unwritable(path);
  const forWriting = /^SQLITE_(READONLY|PERM|AUTH)|^SQLITE_IOERR_(WRITE|FSYNC|TRUNCATE|LOCK)/.test(code);
  // On a read-only file system it is the WAL beside the store that cannot be made.
  if (forWriting || (code.startsWith('SQLITE_CANTOPEN') && locked !== undefined))
    return new Fault('store_unwritable', `the store cannot be written (${code}): ${locked ?? path}`, {
      cause: error,
    });
  if (/^SQLITE_(CONSTRAINT|MISUSE|RANGE|MISMATCH)/.test(code)) return error;
  return fault('store_unreadable', `the store cannot be read (${code})`);
}

/**
 * Which file of the store this account may not write: SQLite makes the index of the WAL with the mode that the store
 * has then, and a reader of a read-only store leaves it so.
 */
function unwritable(path: string): string | undefined {
  const parts = [path, `${path}-wal`, `${path}-shm`, dirname(path)];
  return parts.find((part) => !mayWrite(part));
}

function mayWrite(part: string): boolean {
  try {
    accessSync(part, constants.W_OK);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT';
  }
}
