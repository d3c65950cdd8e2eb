// Kernel locks by SQLite: BEGIN EXCLUSIVE on a file of its own, freed 4 ms after kill -9 of its holder. Such a file
// is never opened otherwise, nor unlinked: closing any other descriptor of it in this process would drop the lock,
// and a taker that found it gone and one that still holds it would both hold.

import { lstatSync, lutimesSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { fileName } from '../crypto/file-name.ts';
import type { Lock, Locks } from '../ports/lock.ts';
import { Fault } from '../protocol/errors.ts';
import { isBusy, storeFault } from './database.ts';
import { createPrivateFile } from './private-file.ts';

/** Locks as files in `directory`. Somebody may remove it under a process that goes on, also while a lock is taken. */
export function locksIn(directory: string): Locks {
  const fileOf = (name: string): string => path.join(directory, `${fileName(name)}.lock`);
  const statOf = (name: string) => lstatSync(fileOf(name), { throwIfNoEntry: false });
  return {
    isHeld: (name) => {
      if (statOf(name) === undefined) return false;
      const lock = takeFile(fileOf(name));
      lock?.release();
      return lock === undefined;
    },
    stamp: (name, atMs) => {
      // By its path: no descriptor of it is opened where it is there.
      mkdirSync(directory, { recursive: true, mode: 0o700 });
      if (statOf(name) === undefined) createPrivateFile(fileOf(name));
      // Never of a file that a link leads to.
      lutimesSync(fileOf(name), atMs / 1_000, atMs / 1_000);
    },
    stampedAtMs: (name) => statOf(name)?.mtimeMs,
    tryTake: (name) => {
      const file = fileOf(name);
      for (let tries = 1; ; tries += 1)
        try {
          mkdirSync(directory, { recursive: true, mode: 0o700 });
          return takeFile(file);
        } catch (error) {
          if (tries === triesMax) throw error;
        }
    },
  };
}

const triesMax = 5;

/** Takes the lock file at `file`, or answers undefined where another holds it. Faults of its path. */
export function takeFile(file: string): Lock | undefined {
  const driver = open(file);
  try {
    driver.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
  } catch (error) {
    driver.close();
    if (isBusy(error)) return undefined;
    throw storeFault(error, file);
  }
  const taken = inode(file);
  return {
    held: () => taken !== undefined && inode(file) === taken,
    release: () => driver.close(),
  };
}

/** Never made by SQLite itself, whose file others could read. */
function open(file: string): BetterSqlite3.Database {
  createPrivateFile(file);
  try {
    return new BetterSqlite3(file, { timeout: 0, fileMustExist: true });
  } catch (cause) {
    throw new Fault('store_unwritable', `the lock file cannot be opened: ${file}`, { cause });
  }
}

/** Looked at by path, never opened. */
function inode(file: string): string | undefined {
  const found = lstatSync(file, { bigint: true, throwIfNoEntry: false });
  return found && `${found.dev}:${found.ino}`;
}
