// How a relay writes: what comes while it is busy shares a commit, which the disk has before anybody is told.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { expect, it, vi } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { Database } from '../../src/store/database.ts';
import { openRelayStore } from '../../src/store/relay/open.ts';
import { itemId, queueOf } from './queue-contract.ts';

it('what comes in one turn shares one commit, at most 64 of it; under WAL and full syncs, by one writer [REL-049]', async () => {
  const directory = mkdtempSync(path.join(tmpdir(), 'pb-relay-'));
  const file = path.join(directory, 'relay.db');
  const options = { path: file, clock: systemClock, random: systemRandom };
  const said: string[] = [];
  const run = vi.spyOn(Database.prototype, 'run');
  const pragma = vi.spyOn(Database.prototype, 'pragma');
  const store = await openRelayStore(options);
  try {
    expect(pragma.mock.results.map(({ value }) => value)).toContain('wal');
    // SQLite's word for FULL.
    expect(pragma.mock.calls.map(([what]) => what)).toContain('synchronous');
    expect(pragma.mock.results.map(({ value }) => value)).toContain(2);
    await expect(openRelayStore(options)).rejects.toMatchObject({ code: 'store_busy' });
    const queue = queueOf('A'.repeat(43), 1);
    await store.register(queue, { door: false });
    run.mockClear();
    const posts = Array.from({ length: 150 }, (_, nth) =>
      store
        .post(queue, { id: itemId(nth), ttlMs: 60_000, body: new Uint8Array([1]) })
        .then((outcome) => said.push(outcome)),
    );
    await Promise.all(posts);
    const commits = run.mock.calls.filter(([sql]) => sql === 'COMMIT');
    expect([said.filter((one) => one === 'accepted').length, commits.length]).toEqual([150, 3]);
    const inserted: number[] = [];
    for (const [sql] of run.mock.calls)
      if (sql === 'BEGIN IMMEDIATE') inserted.push(0);
      else if (sql.trimStart().startsWith('INSERT INTO item')) (inserted[inserted.length - 1] as number) += 1;
    expect(inserted).toEqual([64, 64, 22]);
  } finally {
    run.mockRestore();
    pragma.mockRestore();
    await store.close();
  }
  const left = new BetterSqlite3(file, { readonly: true });
  expect(left.prepare('SELECT count(*) FROM item').pluck().get()).toBe(150);
  left.close();
  rmSync(directory, { recursive: true });
});
