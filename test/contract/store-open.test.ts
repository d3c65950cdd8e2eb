// Opening the store: durable on every connection, private, and only what it is.

import { chmodSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { describe, expect, it, vi } from 'vitest';
import { ack } from '../../src/mailbox/ack.ts';
import { acknowledge } from '../../src/mailbox/acknowledge.ts';
import { intake } from '../../src/mailbox/intake.ts';
import { send } from '../../src/mailbox/send.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { Fault } from '../../src/protocol/errors.ts';
import { sendFields } from '../../src/protocol/requests.ts';
import { Database } from '../../src/store/database.ts';
import { openStore } from '../../src/store/open.ts';
import { root } from '../process/postbell.ts';
import { seededRandom } from './clock.ts';
import {
  alice,
  atEnd,
  attach,
  difference,
  letter,
  openScene,
  post,
  posted,
  read,
  temporaryDirectory,
} from './desk.ts';
import { failingStore } from './failing.ts';

const open = (file: string) => openStore({ path: file, clock: systemClock, random: seededRandom(1) });
const codeOf = (file: string): Promise<string> =>
  open(file).then(
    (store) => {
      store.close();
      return 'opened';
    },
    (error: unknown) => (error instanceof Fault ? error.code : String(error)),
  );

describe('the store', () => {
  it('is durable (synchronous=FULL, WAL, foreign keys) on every connection, not only the first', async () => {
    const opened: Record<string, unknown>[] = [];
    const pragmas = ['synchronous', 'journal_mode', 'foreign_keys'];
    const close = Database.prototype.close;
    Database.prototype.close = function (this: Database) {
      opened.push(Object.fromEntries(pragmas.map((name) => [name, this.pragma(name)])));
      close.call(this);
    };
    try {
      const file = path.join(temporaryDirectory(), 'postbell.db');
      const stores = [await open(file), await open(file), await open(file)];
      for (const store of stores) store.close();
      (await open(file)).close();
    } finally {
      Database.prototype.close = close;
    }
    expect(opened).toEqual(Array(4).fill({ synchronous: 2, journal_mode: 'wal', foreign_keys: 1 }));
  });

  it('and its WAL are readable by the owner alone, whatever the umask', async () => {
    const umask = process.umask(0);
    atEnd(() => process.umask(umask));
    const file = path.join(temporaryDirectory(), 'postbell.db');
    const store = await open(file);
    await store.write((tx) => tx.identity.link('b', 'a'));
    for (const name of [file, `${file}-wal`, `${file}-shm`]) expect(statSync(name).mode & 0o777).toBe(0o600);
    store.close();
    chmodSync(file, 0o640);
    expect(await codeOf(file)).toBe('opened');
    expect(statSync(file).mode & 0o777).toBe(0o640);
  });

  it('is refused where something else than a regular file lies', async () => {
    const directory = temporaryDirectory();
    const target = path.join(directory, 'target.db');
    (await open(target)).close();
    const at = (name: string) => path.join(directory, name);
    symlinkSync(target, at('link.db'));
    symlinkSync(at('nowhere'), at('dangling.db'));
    mkdirSync(at('folder.db'));
    for (const name of ['link.db', 'dangling.db', 'folder.db'])
      expect(await codeOf(at(name))).toBe('insecure_path');
    expect(await codeOf(path.join(directory, 'missing', 'postbell.db'))).toBe('store_unwritable');
  });

  it('[MSG-006] is left as it is where it is no store, or one of a newer release', async () => {
    const directory = temporaryDirectory();
    const garbage = path.join(directory, 'garbage.db');
    writeFileSync(garbage, 'not a database, but long enough to have a header'.repeat(40));
    const before = readFileSync(garbage);
    expect(await codeOf(garbage)).toBe('store_unreadable');
    expect(readFileSync(garbage).equals(before)).toBe(true);
    const newer = path.join(directory, 'newer.db');
    (await open(newer)).close();
    const driver = new BetterSqlite3(newer);
    driver.pragma('user_version = 99');
    driver.pragma('wal_checkpoint(TRUNCATE)');
    driver.close();
    const kept = readFileSync(newer);
    expect(await codeOf(newer)).toBe('store_unreadable');
    expect(readFileSync(newer).equals(kept)).toBe(true);
  });

  it.each([
    ['another program', 0],
    ['another program with a version of its own', 1],
    ['another program with our version', 3],
    ['a newer release', 99],
  ])('[MSG-006] of %s is left to the byte, whatever its journal mode', async (_, version) => {
    for (const mode of ['delete', 'wal']) {
      const file = path.join(temporaryDirectory(), 'postbell.db');
      const driver = new BetterSqlite3(file);
      driver.pragma(`journal_mode = ${mode}`);
      driver.exec('CREATE TABLE launcher (x)');
      driver.pragma(`user_version = ${version}`);
      driver.close();
      const before = readFileSync(file);
      expect(await codeOf(file)).toBe('store_unreadable');
      expect(readFileSync(file).equals(before)).toBe(true);
    }
  });

  it('[MSG-006] of an older release whose migration fails is left to the byte', async () => {
    const file = path.join(temporaryDirectory(), 'postbell.db');
    const driver = new BetterSqlite3(file);
    driver.pragma('journal_mode = WAL');
    driver.exec(readFileSync(path.join(root, 'src/store/sql/001-local-mail.sql'), 'utf8'));
    driver.exec('CREATE TABLE router_run (x)');
    driver.pragma('user_version = 1');
    driver.close();
    const before = readFileSync(file);
    expect(await codeOf(file)).toBe('store_unreadable');
    expect(readFileSync(file).equals(before)).toBe(true);
  });

  it('is opened again with all that was in it, and sees what others commit', async () => {
    const desk = await openScene();
    await posted(desk);
    const other = await desk.secondStore();
    expect(other.changed()).toBe(true);
    expect(other.changed()).toBe(false);
    await posted(desk);
    expect(other.changed()).toBe(true);
    expect(other.read((tx) => tx.feed.end().message)).toBe(2);
    expect(desk.rows('PRAGMA user_version')).toEqual([{ user_version: 9 }]);
  });
});

describe('every connection', () => {
  it('[MSG-004] writes with synchronous=FULL, set and read back, not the first one alone', async () => {
    const pragma = vi.spyOn(BetterSqlite3.prototype, 'pragma');
    try {
      const desk = await openScene();
      await desk.secondStore();
      const read = pragma.mock.calls.flatMap(([text], nth) =>
        text === 'synchronous' ? [pragma.mock.results[nth]?.value] : [],
      );
      expect(read).toEqual([2, 2]);
    } finally {
      pragma.mockRestore();
    }
  });
});

describe('a send', () => {
  it.each([false, true])(
    '[MSG-004] is answered, told and touched for only after its commit (writes of one turn share it: %s)',
    async (groupCommits) => {
      const desk = await openScene();
      const store = await openStore({ ...desk, groupCommits });
      atEnd(() => store.close());
      const holder = new BetterSqlite3(desk.path);
      atEnd(() => holder.close());
      holder.exec('BEGIN IMMEDIATE');
      let answered = false;
      const sending = post({ ...desk, store }).then(() => {
        answered = true;
      });
      await desk.clock.advance(1_000);
      expect([answered, desk.notified, desk.wake.touches]).toEqual([false, [], 0]);
      holder.exec('ROLLBACK');
      desk.onNotify = ({ delivery_id }) => {
        expect(desk.rows('SELECT delivery_id FROM delivery')).toEqual([{ delivery_id }]);
        return { delivered: false };
      };
      await desk.clock.advance(1_000);
      await sending;
      expect([desk.notified.length, desk.wake.touches]).toEqual([1, 1]);
    },
  );
});

describe('an action that fails at any of its statements', () => {
  it('[INB-074, MSG-005] leaves no row of any kind', async () => {
    const desk = await openScene();
    await attach(desk, 's1');
    const { message_id } = await posted(desk);
    const one = { project: 'shop', recipient: 'bob', message_id, idempotency_key: 'k' };
    const second = await posted(desk);
    const messages = [message_id, second.message_id].map((msg_id) => ({ sender: 'local', msg_id }));
    const scope = { project: 'shop', recipient: 'bob' };
    const { database, store } = failingStore(desk);
    const failing = { ...desk, store };
    const actions: Record<string, [number, () => Promise<unknown>]> = {
      send: [5, () => send(failing, read(sendFields, letter()), alice)],
      ack: [3, () => ack(failing, one, alice)],
      intake: [4, () => intake(failing, { ...one, state: 'fetched' }, alice)],
      acknowledge: [14, () => acknowledge(failing, { ...scope, messages }, alice)],
    };
    for (const [name, [statements, action]] of Object.entries(actions)) {
      const before = desk.counts();
      const open = desk.rows('SELECT open FROM delivery');
      for (let nth = 1; nth <= statements; nth += 1) {
        database.left = nth;
        const fault = await action().catch((error: unknown) => error);
        expect(`${name} ${(fault as Fault).code}`).toBe(`${name} store_unwritable`);
        expect(database.left).toBe(0);
        expect(difference(before, desk.counts())).toEqual({});
        expect(desk.rows('SELECT open FROM delivery')).toEqual(open);
      }
    }
    for (const [statements, action] of Object.values(actions)) {
      database.left = statements + 1;
      await action();
    }
    expect(desk.counts()).toMatchObject({ message: 3, receipt: 4 });
  });
});
