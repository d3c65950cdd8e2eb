// The store opened to be looked at: nothing is made, migrated or written, also beside one that writes.

import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { inspectStore } from '../../src/store/inspection.ts';
import { openStoreReadOnly } from '../../src/store/open-read-only.ts';
import { FakeClock, seededRandom } from './clock.ts';
import { attach, openScene, posted, temporaryDirectory } from './desk.ts';
import { openRung } from './rung.ts';

const optionsOf = (file: string) => ({ path: file, clock: new FakeClock(), random: seededRandom(1) });

describe('opening for reading alone', () => {
  it('where there is no file or an empty one there is no store, and none is made', async () => {
    const directory = temporaryDirectory();
    const file = path.join(directory, 'postbell.db');
    expect(await openStoreReadOnly(optionsOf(file))).toBeUndefined();
    expect(await openStoreReadOnly(optionsOf(path.join(directory, 'none', 'postbell.db')))).toBeUndefined();
    expect(await inspectStore(optionsOf(file))).toBeUndefined();
    expect(readdirSync(directory)).toEqual([]);
    writeFileSync(file, '');
    expect(await openStoreReadOnly(optionsOf(file))).toBeUndefined();
    expect(readFileSync(file).length).toBe(0);
  });

  it('reads beside a writer, and refuses to write', async () => {
    const scene = await openScene();
    const { message_id } = await posted(scene);
    const store = await openStoreReadOnly(optionsOf(scene.path));
    expect(store?.read((tx) => tx.messages.byId(message_id)?.message.recipient)).toBeDefined();
    await expect(store?.write((tx) => tx.routers.supersede('1', 1))).rejects.toMatchObject({
      code: 'store_unwritable',
    });
    store?.close();
    expect(existsSync(`${scene.path}-wal`)).toBe(true);
  });

  it('a store of an older schema, of a newer one, or of another program is left as it is', async () => {
    const scene = await openScene();
    scene.store.close();
    const setSchema = (schema: number) => {
      const database = new BetterSqlite3(scene.path);
      database.pragma(`user_version = ${schema}`);
      database.close();
    };
    for (const schema of [1, 99]) {
      setSchema(schema);
      const before = readFileSync(scene.path);
      await expect(openStoreReadOnly(optionsOf(scene.path))).rejects.toMatchObject({
        code: 'store_unreadable',
      });
      expect(readFileSync(scene.path).equals(before)).toBe(true);
    }
    const foreign = path.join(scene.directory, 'other.db');
    new BetterSqlite3(foreign).exec('CREATE TABLE t (a)').close();
    await expect(openStoreReadOnly(optionsOf(foreign))).rejects.toMatchObject({ code: 'store_unreadable' });
  });
});

describe('what the store says of sessions', () => {
  it('a session is unanswered at its third ring without an intake, and answered by one', async () => {
    const { desk, startNotifier, rungAt, done } = await openRung();
    const live = async () => (await inspectStore({ ...optionsOf(desk.path), clock: desk.clock }))?.mail?.live;
    await attach(desk, 's1', { lease_ms: 300_000 });
    startNotifier();
    const { message_id } = await posted(desk);
    await desk.clock.advance(89_000);
    expect(await live()).toMatchObject([
      { session_id: 's1', bell: 'listener', unanswered: false, hookSeen: false },
    ]);
    await desk.clock.advance(2_000);
    expect(rungAt()).toEqual([0, 30, 90]);
    expect(await live()).toMatchObject([{ session_id: 's1', unanswered: true }]);
    await done(message_id);
    expect(await live()).toMatchObject([{ session_id: 's1', unanswered: false }]);
    await desk.clock.advance(300_000);
    expect(await inspectStore({ ...optionsOf(desk.path), clock: desk.clock })).toMatchObject({
      mail: { live: [], expired: 1 },
    });
  });

  it('a hook that came to the store is known under every id of its session', async () => {
    const scene = await openScene();
    await attach(scene, 's1');
    await scene.store.write((tx) => {
      tx.identity.recordLauncher({ pid: 1, start_time: 'x', session_id: 's2' }, '2026-03-01T12:00:00.000Z');
      tx.identity.link('s2', 's1');
    });
    const facts = await inspectStore({ ...optionsOf(scene.path), clock: scene.clock });
    expect(facts?.mail?.live).toMatchObject([{ session_id: 's1', hookSeen: true }]);
  });
});
