// Processes wake each other by a touch of one file: none is missed, a lost one is made good, and the file may go away.

import { existsSync, mkdirSync, rmSync, statSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { bundleChild, type Child, start } from '../contract/process.ts';
import { type Home, makeHome, until } from './home.ts';
import { postbell } from './postbell.ts';

let entry: string;
beforeAll(async () => {
  entry = await bundleChild();
});

let home: Home;
let database: string;
let file: string;
beforeEach(() => {
  home = makeHome();
  const data = home.env.POSTBELL_HOME as string;
  mkdirSync(path.join(data, 'runtime'), { recursive: true, mode: 0o700 });
  database = path.join(data, 'postbell.db');
  file = path.join(data, 'runtime', 'mail');
});
afterEach(() => home.end());

interface Waiter {
  child: Child;
  /** The last number it said. */
  seen(): number;
}

/** One that asks the store again at each touch, and never otherwise unless it ticks. */
async function waiter(how: 'touched' | 'ticking'): Promise<Waiter> {
  const child = start(entry, 'watch', database, how);
  let last = Number(await child.line());
  child.process.stdout?.on('data', (chunk) => {
    last = Number(String(chunk).trim().split('\n').at(-1));
  });
  return { child, seen: () => last };
}

const commit = async (count: number): Promise<void> => {
  const { code, stderr } = await start(entry, 'commit', database, String(count)).ended;
  expect([code, stderr]).toEqual([0, '']);
};

describe('[SES-160] a touch', () => {
  it('is missed by none of 30 waiters, over 1,000 commits', async () => {
    await commit(0);
    const waiters = await Promise.all(Array.from({ length: 30 }, () => waiter('touched')));
    for (let done = 0; done < 1_000; done += 100) {
      await commit(100);
      // No waiter ticks, and nobody commits any more: what was missed now would be missed for ever.
      await until(
        `all have seen ${done + 100}`,
        () => waiters.every(({ seen }) => seen() === done + 100),
        5_000,
      );
    }
    expect(statSync(file).mode & 0o777).toBe(0o600);
  }, 90_000);

  it('that its writer was killed before is made good within 2.5 s: by a waiter\u2019s tick, and by the router for the others', async () => {
    const die = async () => {
      const began = Date.now();
      expect((await start(entry, 'dieUntouched', database).ended).code).toBeNull();
      return () => Date.now() - began;
    };
    await commit(1);
    const ticking = await waiter('ticking');
    const touched = await waiter('touched');
    expect([ticking.seen(), touched.seen()]).toEqual([1, 1]);
    const before = statSync(file).mtimeMs;
    const alone = await die();
    await until('the tick shows it', () => ticking.seen() === 2, 2_500);
    expect(alone()).toBeLessThan(3_000);
    expect(touched.seen()).toBe(1);
    expect(statSync(file).mtimeMs).toBe(before);
    home.start(['router']);
    await until(
      'the router answers',
      async () => (await postbell(home.env, home.project, ['router', 'status'])).code === 0,
    );
    await die();
    await until('the router has touched', () => touched.seen() === 3, 2_500);
  });

  it('whose file was deleted makes it again, and nothing is lost', async () => {
    await commit(1);
    const waiters = await Promise.all([waiter('touched'), waiter('touched')]);
    for (let round = 2; round <= 4; round += 1) {
      rmSync(file);
      await commit(1);
      expect(existsSync(file)).toBe(true);
      expect(statSync(file).mode & 0o777).toBe(0o600);
      await until(`round ${round} is seen`, () => waiters.every(({ seen }) => seen() === round), 2_000);
    }
  });
});
