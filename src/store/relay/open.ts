// The store of a relay in one SQLite file. An item is accepted after its commit under synchronous=FULL, set and read back;
// posts, settlements and drains of one turn of the event loop share a commit. One process has the store: it knows alone who
// holds which item.

import { lstatSync, realpathSync } from 'node:fs';
import path from 'node:path';
import type { Clock } from '../../ports/clock.ts';
import type { Lock } from '../../ports/lock.ts';
import type { Random } from '../../ports/random.ts';
import type { QueueStore } from '../../ports/relay-queue.ts';
import { Fault } from '../../protocol/errors.ts';
import { checkVersion, connect, patiently, setDurable, transaction } from '../connection.ts';
import { damageOf } from '../damage.ts';
import { type Database, storeFault } from '../database.ts';
import { takeFile } from '../lock.ts';
import { createPrivateFile } from '../private-file.ts';
import { bringUpToDate, isOlder, type Schema } from '../schema.ts';
import { SqliteQueues } from './queues.ts';
import queues from './sql/001-queues.sql';
import { tokenKeyBytes } from './tokens.ts';

const schema: Schema = { migrations: [queues], tables: ['relay', 'queue', 'item'] };
const idBytes = 16;

export interface RelayStoreOptions {
  path: string;
  clock: Clock;
  random: Random;
}

/**
 * Opens the store at `path`, makes it where there is none. Fault `store_busy` where another process has it, by whatever name;
 * `store_unreadable` where its file is damaged: that is left as it is.
 */
export async function openRelayStore(options: RelayStoreOptions): Promise<QueueStore> {
  const file = realFile(options.path);
  const lock = takeFile(`${file}.lock`);
  if (lock === undefined) throw new Fault('store_busy', `another relay has the store: ${file}`);
  try {
    return await openLocked({ ...options, path: file }, lock);
  } catch (error) {
    lock.release();
    throw storeFault(error, file);
  }
}

async function openLocked(options: RelayStoreOptions, lock: Lock): Promise<QueueStore> {
  const { path: file, clock, random } = options;
  createPrivateFile(file);
  const database = connect(file);
  try {
    await patiently(options, () => setUp(database, file));
    if (await patiently(options, () => isOlder(database, schema, file)))
      await patiently(options, () =>
        transaction(database, 'BEGIN IMMEDIATE', () => {
          bringUpToDate(database, schema);
          database.run(
            'INSERT OR IGNORE INTO relay (one, id, token_key) VALUES (1, ?, ?)',
            Buffer.from(random.bytes(idBytes)).toString('hex'),
            random.bytes(tokenKeyBytes),
          );
        }),
      );
    return new SqliteQueues(database, { path: file, clock, random, atEnd: () => lock.release() });
  } catch (error) {
    database.close();
    throw error;
  }
}

function setUp(database: Database, file: string): void {
  checkVersion(database);
  // Before anything is written: what is no store of ours is left as it is.
  isOlder(database, schema, file);
  const damage = damageOf(database);
  if (damage !== undefined)
    throw new Fault('store_unreadable', `the store of the relay is damaged (${damage}): ${file}`);
  setDurable(database, file);
}

/** The one name of the file, whatever links lead to it: locks and the WAL go by it. */
function realFile(given: string): string {
  try {
    const found = lstatSync(given, { throwIfNoEntry: false });
    if (found !== undefined) return onlyName(realpathSync(given));
    return path.join(realpathSync(path.dirname(given)), path.basename(given));
  } catch (cause) {
    if (cause instanceof Fault) throw cause;
    const { code } = cause as NodeJS.ErrnoException;
    throw new Fault('store_unwritable', `the store of the relay cannot be made (${code}): ${given}`, {
      cause,
    });
  }
}

/** By a second name of the same file, another process would have another lock and another WAL. */
function onlyName(file: string): string {
  if (lstatSync(file).nlink === 1) return file;
  throw new Fault('insecure_path', `the store of the relay has a second name (a hard link): ${file}`);
}
