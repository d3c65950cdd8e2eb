// The file that says whom the account trusts, while it is written: whoever reads it, and whatever kills its writer, it is whole.

import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { signerOf } from '../../src/crypto/ed25519.ts';
import { accountOf } from '../../src/platform/account.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { openStore } from '../../src/store/open.ts';
import { FakeClock } from './clock.ts';
import { ok, temporaryDirectory } from './desk.ts';
import { bundleChild, start } from './process.ts';

let entry: string;
beforeAll(async () => {
  entry = await bundleChild();
});

const keyOf = (nth: number): string => signerOf(new Uint8Array(32).fill(nth)).key;
const kept = Array.from({ length: 20 }, (_, nth) => [`kept-${nth}`, keyOf(nth)] as const);
const changing = Array.from({ length: 50 }, (_, nth) => [`changing-${nth}`, keyOf(100 + nth)] as const);

describe('[INB-150] what Postbell keeps', () => {
  it('of its owner stays a file, read whole by others while it is written, and whole when its writer is killed', async () => {
    const directory = temporaryDirectory();
    const file = path.join(directory, 'peers.json');
    const account = accountOf({ keyFile: path.join(directory, 'identity.key'), policyFile: file });
    writeFileSync(
      file,
      JSON.stringify(Object.fromEntries(kept.map(([name, key]) => [name, { key, note: 'x'.repeat(500) }]))),
      { mode: 0o640 },
    );
    const sizes = new Set<number>();
    const look = (): void => {
      const text = readFileSync(file, 'utf8');
      const names = Object.keys(JSON.parse(text) as object);
      expect(kept.filter(([name]) => !names.includes(name))).toEqual([]);
      expect(ok(account.policy()).peers.length).toBeGreaterThanOrEqual(kept.length);
      sizes.add(text.length);
    };
    for (let round = 0; round < 12; round += 1) {
      const writer = start(entry, 'owners', file, JSON.stringify(changing));
      await writer.line();
      // Each dies a little later than the one before.
      const until = performance.now() + 100 + round * 7;
      do {
        look();
        await new Promise((resolve) => setImmediate(resolve));
      } while (performance.now() < until);
      writer.process.kill('SIGKILL');
      await writer.ended;
      look();
    }
    expect(sizes.size).toBeGreaterThan(2);
    expect(statSync(file).mode & 0o777).toBe(0o640);
    // The lock of the dead holds up nobody.
    const last = start(entry, 'owners', file, JSON.stringify(changing));
    await last.line();
    const before = readFileSync(file, 'utf8');
    await expect.poll(() => readFileSync(file, 'utf8') === before, { timeout: 5_000 }).toBe(false);
  }, 30_000);

  it('of mail, rings, failures and pairing is a table of one store', async () => {
    const directory = temporaryDirectory();
    const store = await openStore({
      path: path.join(directory, 'postbell.db'),
      clock: new FakeClock(),
      random: systemRandom,
    });
    const { default: Database } = await import('better-sqlite3');
    const database = new Database(path.join(directory, 'postbell.db'), { readonly: true });
    const tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all();
    database.close();
    store.close();
    for (const name of [
      'message',
      'delivery',
      'receipt',
      'listener_row',
      'listener_cursor',
      'reservation',
      'pair_request',
      'pairing_notice',
      'failed_delivery',
      'outbox',
    ])
      expect(tables).toContain(name);
    expect(readdirSync(directory).filter((name) => !name.startsWith('postbell.db'))).toEqual([]);
  });
});
