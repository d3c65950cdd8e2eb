// Where the data may lie: any place that cannot hold it is refused by a code and in time, and gets nothing in it.

import { existsSync, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Home, makeHome } from './home.ts';
import { postbell } from './postbell.ts';

let home: Home;
beforeEach(() => {
  home = makeHome();
});
afterEach(() => home.end());

const poll = ['message', 'poll', '--project', 'p', '--recipient', 'b'];

it.each([
  ['below a file system that has no room for directories', () => '/proc/x/data', 'store_unwritable'],
  ['below a file', (at: string) => path.join(at, 'file', 'data'), 'store_unwritable'],
  ['a file', (at: string) => path.join(at, 'file'), 'insecure_path'],
  ['a link', (at: string) => path.join(at, 'link'), 'insecure_path'],
  ['a link to nowhere', (at: string) => path.join(at, 'dangling'), 'insecure_path'],
  ['below a link to nowhere', (at: string) => path.join(at, 'dangling', 'data'), 'store_unwritable'],
  ['with a name that is too long', (at: string) => path.join(at, 'x'.repeat(300)), 'store_unwritable'],
])('data that would be %s', async (_, place, code) => {
  writeFileSync(path.join(home.dir, 'file'), 'kept');
  symlinkSync(home.project, path.join(home.dir, 'link'));
  symlinkSync('/nowhere/at/all', path.join(home.dir, 'dangling'));
  const data = place(home.dir);
  const { stdout, stderr, ...ended } = await postbell(
    { ...home.env, POSTBELL_HOME: data },
    home.project,
    poll,
  );
  expect([ended.code, stdout]).toEqual([1, '']);
  expect(stderr).toMatch(new RegExp(`^postbell: ${code}: [^\n]*\n$`));
  expect(existsSync(path.join(data, 'postbell.db'))).toBe(false);
});

it('data in directories that are not there yet: all are made, owner-private', async () => {
  const first = path.join(home.dir, 'a');
  const data = path.join(first, 'b', 'c');
  const all = [1, 2, 3, 4].map(() => postbell({ ...home.env, POSTBELL_HOME: data }, home.project, poll));
  for (const { code } of await Promise.all(all)) expect(code).toBe(0);
  for (const directory of [first, path.dirname(data), data])
    expect(statSync(directory).mode & 0o777).toBe(0o700);
  mkdirSync(path.join(home.dir, 'there'), { mode: 0o755 });
  const below = path.join(home.dir, 'there', 'data');
  expect((await postbell({ ...home.env, POSTBELL_HOME: below }, home.project, poll)).code).toBe(0);
  expect([path.dirname(below), below].map((one) => statSync(one).mode & 0o777)).toEqual([0o755, 0o700]);
});

it.each([
  ['below a file', (at: string) => path.join(at, 'file', 's')],
  ['in a directory that is closed to it', (at: string) => path.join(at, 'closed', 's')],
  ['in a directory that is not there', (at: string) => path.join(at, 'none', 's')],
])('a router\u2019s socket %s: none can be reached or started, and mail goes on', async (_, place) => {
  writeFileSync(path.join(home.dir, 'file'), 'kept');
  const closed = path.join(home.dir, 'closed');
  mkdirSync(closed, { mode: 0o000 });
  const run = (words: string[]) =>
    postbell({ ...home.env, POSTBELL_ROUTER_SOCKET: place(home.dir) }, home.project, words, 'x', true);
  expect((await run(poll)).code).toBe(0);
  writeFileSync(path.join(home.env.POSTBELL_HOME as string, 'router.token'), 'x\n', { mode: 0o600 });
  expect((await run(['send', 'bob'])).stdout).toMatch(/^Stored msg_\w+ for "bob" /);
  const found = await run(['message', 'discover', '--project', 'p']);
  expect(found.stderr).toMatch(/^postbell: router_unreachable: [^\n]*\n$/);
  const started = await run(['router']);
  expect(started.code).toBe(1);
  expect(started.stderr).toMatch(/^postbell: (?:insecure_path|socket_path_occupied): [^\n]*\n$/);
});
