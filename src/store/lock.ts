// Kernel locks by SQLite: BEGIN EXCLUSIVE on a file of its own, freed 4 ms after kill -9 of its holder. Such a file
// is never opened otherwise, nor unlinked: closing any other descriptor of it in this process would drop the lock,
// and a taker that found it gone and one that still holds it would both hold.

import { lstatSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { sha256Hex } from '../crypto/hash.ts';
import type { Lock, Locks } from '../ports/lock.ts';
import { isBusy, storeFault } from './database.ts';
import { createPrivateFile } from './private-file.ts';

/** Locks as files in `directory`. */
export function locksIn(directory: string): Locks {
  return {
    tryTake: (name) => {
      // Somebody may have removed it under a process that goes on.
      mkdirSync(directory, { recursive: true, mode: 0o700 });
      return tryTake(path.join(directory, `${fileName(name)}.lock`));
    },
  };
}

/** Any text as one file name without path meaning; a long one by its hash. */
function fileName(name: string): string {
  const encoded = encodeURIComponent(name).replaceAll('.', '%2E').replaceAll('*', '%2A');
  return encoded.length <= 120 ? encoded : sha256Hex(name);
}

/** Takes the lock file at `file`, or answers undefined where another holds it. */
export function tryTake(file: string): Lock | undefined {
  createPrivateFile(file);
  const driver = new BetterSqlite3(file, { timeout: 0 });
  try {
    driver.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
  } catch (error) {
    driver.close();
    if (isBusy(error)) return undefined;
    throw storeFault(error, file);
  }
  const taken = inode(file);
  return { held: () => taken !== undefined && inode(file) === taken, release: () => driver.close() };
}

/** Looked at by path, never opened. */
function inode(file: string): string | undefined {
  const found = lstatSync(file, { bigint: true, throwIfNoEntry: false });
  return found && `${found.dev}:${found.ino}`;
}
