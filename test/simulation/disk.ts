// The store's file and its one connection, shared by all simulated processes: a transaction never lasts longer than a
// step, so none can see another's. It tells what each commit changed, and breaks a transaction where it is told to.

import BetterSqlite3 from 'better-sqlite3';
import { Database, type Row } from '../../src/store/database.ts';

/** A process was killed inside its transaction. */
export class Killed extends Error {}

export interface Change {
  table: string;
  before: Row | undefined;
  after: Row | undefined;
}

/** What befalls a transaction. */
export type Fate =
  | { kind: 'none' }
  | { kind: 'cut'; atStatement: number }
  | { kind: 'broken'; atStatement: number };

const none: Fate = { kind: 'none' };

export class Disk extends Database {
  readonly #driver: BetterSqlite3.Database;
  /** Of the work that runs. */
  #changes: Change[] = [];
  /** Of those that share its transaction and are done. */
  #done: Change[][] = [];
  #fate: Fate = none;
  #statementsLeft = 0;
  /** The process was killed in it: nothing more of it happens, and nothing is kept. */
  #isCut = false;
  #inTransaction = false;
  /** Whether another program holds the lock. */
  locked: (verb: 'reading' | 'writing') => boolean = () => false;
  /** Asked at the begin of each write transaction. */
  fate: () => Fate = () => none;
  /** Called for each piece of work that a commit keeps, in order. */
  onCommit: (changes: readonly Change[]) => void = () => {};

  constructor(driver: BetterSqlite3.Database) {
    super(driver);
    this.#driver = driver;
  }

  override run(...call: Parameters<Database['run']>): number {
    const [sql] = call;
    if (sql === 'BEGIN IMMEDIATE') this.#begin();
    else if (sql === 'BEGIN') this.#refuseIfLocked('reading');
    else if (sql === 'COMMIT') return this.#commit();
    else if (sql === 'ROLLBACK') this.#forget();
    else if (sql.startsWith('ROLLBACK TO')) return this.#takeBack(...call);
    else this.#statement();
    if (sql === 'RELEASE work') this.#next();
    return super.run(...call);
  }

  override get(...call: Parameters<Database['get']>): Row | undefined {
    this.#statement();
    return super.get(...call);
  }

  override all(...call: Parameters<Database['all']>): Row[] {
    this.#statement();
    return super.all(...call);
  }

  /** Watches every table that the product's schema has. */
  watch(): void {
    this.#driver.function('changed', { varargs: true, deterministic: false }, (...values: unknown[]) => {
      this.#changed(values as (string | number | null)[]);
      return null;
    });
    const tables = this.#driver
      .prepare(`SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`)
      .all() as { name: string }[];
    for (const { name } of tables) this.#watchTable(name);
  }

  readonly #columns = new Map<string, string[]>();

  #watchTable(table: string): void {
    const columns = (this.#driver.pragma(`table_info(${table})`) as { name: string }[])
      .map((column) => column.name)
      .filter((name) => name !== 'payload' && name !== 'payload_sha256' && name !== 'text');
    this.#columns.set(table, columns);
    const list = (row: string): string => columns.map((name) => `${row}.${name}`).join(', ');
    const trigger = (verb: string, rows: string): void => {
      this.#driver.exec(
        `CREATE TEMP TRIGGER watch_${table}_${verb} AFTER ${verb} ON main.${table}
         BEGIN SELECT changed('${table}', '${verb}', ${rows}); END`,
      );
    };
    trigger('insert', list('new'));
    trigger('update', `${list('old')}, ${list('new')}`);
    trigger('delete', list('old'));
  }

  #changed([table, verb, ...values]: (string | number | null)[]): void {
    const columns = this.#columns.get(table as string) as string[];
    const row = (from: number): Row => {
      const made: Row = {};
      for (let at = 0; at < columns.length; at += 1)
        made[columns[at] as string] = values[from + at] as string | number | null;
      return made;
    };
    this.#changes.push({
      table: table as string,
      before: verb === 'insert' ? undefined : row(0),
      after: verb === 'delete' ? undefined : row(verb === 'update' ? columns.length : 0),
    });
  }

  #next(): void {
    if (this.#changes.length > 0) this.#done.push(this.#changes);
    this.#changes = [];
  }

  #begin(): void {
    this.#changes = [];
    this.#done = [];
    this.#refuseIfLocked('writing');
    this.#inTransaction = true;
    this.#fate = this.fate();
    this.#statementsLeft = 'atStatement' in this.#fate ? this.#fate.atStatement : 0;
  }

  #takeBack(...call: Parameters<Database['run']>): number {
    if (this.#isCut) throw new Killed();
    const changes = super.run(...call);
    this.#changes = [];
    return changes;
  }

  #refuseIfLocked(verb: 'reading' | 'writing'): void {
    if (!this.locked(verb)) return;
    this.#forget();
    throw Object.assign(new Error('locked'), { code: 'SQLITE_BUSY' });
  }

  #statement(): void {
    if (this.#isCut) throw new Killed();
    if (!this.#inTransaction || this.#statementsLeft === 0) return;
    this.#statementsLeft -= 1;
    if (this.#statementsLeft > 0) return;
    this.#isCut = this.#fate.kind === 'cut';
    throw this.#isCut
      ? new Killed()
      : Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR_WRITE' });
  }

  #commit(): number {
    if (this.#isCut) throw new Killed();
    const written = super.run('COMMIT');
    this.#next();
    const works = this.#done;
    this.#forget();
    for (const changes of works) this.onCommit(changes);
    return written;
  }

  #forget(): void {
    this.#changes = [];
    this.#done = [];
    this.#fate = none;
    this.#statementsLeft = 0;
    this.#isCut = false;
    this.#inTransaction = false;
  }
}

/** Opens the file that the product has made. Durability is shown elsewhere: here nothing is flushed. */
export function openDisk(path: string): Disk {
  const driver = new BetterSqlite3(path);
  driver.pragma('locking_mode = EXCLUSIVE');
  driver.pragma('journal_mode = WAL');
  driver.pragma('synchronous = OFF');
  driver.pragma('foreign_keys = ON');
  driver.pragma('cache_size = -65536');
  driver.pragma('temp_store = MEMORY');
  const disk = new Disk(driver);
  disk.watch();
  return disk;
}
