// Writes that share a commit: each stands or falls by itself, and all by the disk.

import BetterSqlite3 from 'better-sqlite3';
import { beforeEach, describe, expect, it } from 'vitest';
import { gatherTouches } from '../../src/platform/wake.ts';
import type { Store, Tx } from '../../src/ports/store.ts';
import { Database } from '../../src/store/database.ts';
import { openStore, storeOver } from '../../src/store/open.ts';
import { settle } from './clock.ts';
import { atEnd, openScene, type Scene } from './desk.ts';

/** Counts commits, and fails a statement when told to. */
class CountingDatabase extends Database {
  commits = 0;
  fails: RegExp | undefined;
  code = 'SQLITE_FULL';

  override run(...call: Parameters<Database['run']>): number {
    if (call[0] === 'COMMIT') this.commits += 1;
    if (this.fails?.test(call[0])) {
      // As SQLite does it for a full disk: the whole transaction is gone.
      if (this.code === 'SQLITE_FULL') super.run('ROLLBACK');
      throw Object.assign(new Error('planted'), { code: this.code });
    }
    return super.run(...call);
  }
}

let desk: Scene;
let database: CountingDatabase;
let store: Store;
beforeEach(async () => {
  desk = await openScene();
  database = new CountingDatabase(new BetterSqlite3(desk.path));
  atEnd(() => database.close());
  store = storeOver(database, { ...desk, path: desk.path, groupCommits: true });
});

const link = (name: string) => (tx: Tx) => {
  tx.identity.link(name, 'root');
  return name;
};
const aliases = () => desk.rows('SELECT new_id FROM alias ORDER BY rowid').map((row) => row.new_id);

/** The outcomes of writes that were asked for at once. */
async function together(...works: ((tx: Tx) => unknown)[]): Promise<PromiseSettledResult<unknown>[]> {
  const writes = Promise.allSettled(works.map((work) => store.write(work)));
  await desk.clock.advance(0);
  return writes;
}

describe('writes of one turn', () => {
  it('share one commit, in the order they were asked for, and each has its own value', async () => {
    const outcomes = await together(link('a'), link('b'), link('c'));
    expect(outcomes).toEqual(['a', 'b', 'c'].map((value) => ({ status: 'fulfilled', value })));
    expect(aliases()).toEqual(['a', 'b', 'c']);
    expect(database.commits).toBe(1);
  });

  it('of which one throws leave nothing of it, and all of the others', async () => {
    const fault = new Error('planted');
    const outcomes = await together(
      link('a'),
      (tx) => {
        link('lost')(tx);
        throw fault;
      },
      link('c'),
    );
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(outcomes[1]).toMatchObject({ reason: fault });
    expect(aliases()).toEqual(['a', 'c']);
    expect(database.commits).toBe(1);
  });

  it('fail together where the disk is full, with its code, and nothing of any of them stands', async () => {
    database.fails = /INSERT OR IGNORE INTO alias/;
    const outcomes = await together(link('a'), link('b'));
    for (const outcome of outcomes)
      expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'store_full' } });
    expect(aliases()).toEqual([]);
    database.fails = undefined;
    expect(await together(link('again'))).toEqual([{ status: 'fulfilled', value: 'again' }]);
    expect(aliases()).toEqual(['again']);
  });

  it('of which one meets a fault of the disk fail with its code where they fail, and stand where they do not', async () => {
    database.fails = /INSERT OR REPLACE INTO launcher/;
    database.code = 'SQLITE_IOERR_WRITE';
    const launch = (tx: Tx) =>
      tx.identity.recordLauncher({ pid: 7, start_time: '1', session_id: 's1' }, 'now');
    const outcomes = await together(link('a'), launch, link('c'));
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(outcomes[1]).toMatchObject({ reason: { code: 'store_unwritable' } });
    expect(aliases()).toEqual(['a', 'c']);
  });

  it('[MSG-004] fail together where the commit fails, and are not answered before it', async () => {
    database.fails = /^COMMIT$/;
    const outcomes = await together(link('a'), link('b'));
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(aliases()).toEqual([]);
  });

  it('are 64 to a commit at most', async () => {
    await together(...Array.from({ length: 130 }, (_, nth) => link(`n${nth}`)));
    expect(database.commits).toBe(3);
    expect(aliases()).toHaveLength(130);
  });

  it('see what earlier ones of the same commit wrote', async () => {
    const outcomes = await together(link('a'), (tx) => tx.identity.chain('a'));
    expect(outcomes[1]).toMatchObject({ value: ['root', 'a'] });
    await settle();
    const other = await openStore({ path: desk.path, clock: desk.clock, random: desk.random });
    atEnd(() => other.close());
    expect(other.read((tx) => tx.identity.chain('a'))).toEqual(['root', 'a']);
  });
});

describe('touches of one turn', () => {
  it('are one, after the turn; the next turn touches again', async () => {
    const gathered = gatherTouches(desk.wake, desk.clock);
    let seen = 0;
    gathered.watch(() => {
      seen += 1;
    });
    for (let nth = 0; nth < 5; nth += 1) gathered.touch();
    expect(desk.wake.touches).toBe(0);
    await desk.clock.advance(0);
    expect([desk.wake.touches, seen]).toEqual([1, 1]);
    gathered.touch();
    await desk.clock.advance(0);
    expect([desk.wake.touches, seen]).toEqual([2, 2]);
  });
});
