// Opens the store of this account's mail.

import type { Clock } from '../ports/clock.ts';
import type { Store, Tx } from '../ports/store.ts';
import { attempts } from './attempts.ts';
import { checkVersion, connect, type Patience, patiently, setDurable, transaction } from './connection.ts';
import { type Database, storeFault } from './database.ts';
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

export interface StoreOptions extends Patience {
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

/** Any statement here may find the store locked: by another that makes it this very moment, or ends as its last user. */
function setUp(database: Database, path: string): void {
  checkVersion(database);
  // Before anything is written: what is no store of ours is left as it is.
  needsMigration(database, path);
  setDurable(database, path);
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

  const transact = <T>(work: (tx: Tx) => T): Promise<T> =>
    patiently(options, () => transaction(database, 'BEGIN IMMEDIATE', () => work(tx)));

  return {
    read: (work) => {
      try {
        return transaction(database, 'BEGIN', () => work(tx));
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
