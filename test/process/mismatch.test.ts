// Server and listener of one session that were started with different data directories, or different pinned ids.

import { spawn } from 'node:child_process';
import path from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { locksIn } from '../../src/store/lock.ts';
import { type Home, type Started, until } from './home.ts';
import { examined, type Installation, makeInstallation } from './installation.ts';
import { answer, type Env, stopRouter } from './postbell.ts';
import { liveCards, openSession } from './session.ts';

let home: Installation;
let host: string;
beforeEach(async () => {
  home = await makeInstallation();
  const stand = spawn('sleep', ['600'], { argv0: 'claude' });
  home.atLast(() => stand.kill('SIGKILL'));
  host = String(stand.pid);
});
afterEach(() => home.end());

const dataOf = ({ env }: Home): string => env.POSTBELL_HOME as string;

/** A server of s1 that can be rung, and its project. */
async function serve(more: Env = {}): Promise<string> {
  home.start(['router']);
  const { project } = await answer(home.env, home.project, ['send', 'nobody', '--json'], 'x');
  await openSession(home, {
    CLAUDE_CODE_SESSION_ID: 's1',
    CLAUDE_PID: host,
    POSTBELL_RECIPIENT: 'alice',
    ...more,
  });
  await liveCards(home, project as string, 1);
  return project as string;
}

/** A listener of that session's host, once it waits. */
async function listen(data: string, more: Env = {}): Promise<Started> {
  const started = home.start(['wait'], {
    POSTBELL_HOME: data,
    CLAUDE_PID: host,
    CLAUDE_CODE_SESSION_ID: 's1',
    ...more,
  });
  started.child.stdin?.end('{"session_id":"s1","hook_event_name":"SessionStart"}');
  await until('it waits', () => {
    const locks = locksIn(path.join(data, 'runtime'));
    return ['one', 'two', 's1'].some((id) => {
      const taken = locks.tryTake(`listener-${id}`);
      taken?.release();
      return taken === undefined;
    });
  });
  return started;
}

const rowsIn = (data: string): number => {
  const store = new BetterSqlite3(path.join(data, 'postbell.db'), { readonly: true });
  const count = store.prepare('SELECT count(*) FROM listener_row').pluck().get() as number;
  store.close();
  return count;
};

describe('[INB-147] server and listener of one session', () => {
  it('with different data directories: nothing is delivered, and doctor names both, from either side', async () => {
    await serve();
    const other = path.join(home.dir, 'other');
    home.atEnd(() => stopRouter({ ...home.env, POSTBELL_HOME: other }, home.project));
    const listener = await listen(other);
    const sent = await answer(home.env, home.project, ['send', 'alice', '--json'], 'hello');
    expect(sent.recipient_presence).toBe('live');
    await until('the server rings', () => rowsIn(dataOf(home)) === 1);
    const early = await Promise.race([
      listener.exited.then(() => 'woken'),
      new Promise((resolve) => setTimeout(() => resolve('waits'), 3_000)),
    ]);
    expect([early, listener.stderr(), rowsIn(other)]).toEqual(['waits', '', 0]);
    for (const data of [dataOf(home), other]) {
      const row = (await examined(home, { POSTBELL_HOME: data })).row('listener');
      expect(row).toMatchObject({
        level: 'warn',
        text: expect.stringContaining(
          `${dataOf(home)}/postbell.db (server), ${other}/postbell.db (listener)`,
        ),
        hint: expect.stringContaining('same POSTBELL_HOME'),
      });
    }
  });

  it('with different pinned ids: nothing is delivered, and doctor names both', async () => {
    await serve({ POSTBELL_SESSION: 'one' });
    const listener = await listen(dataOf(home), { POSTBELL_SESSION: 'two' });
    await answer(home.env, home.project, ['send', 'alice', '--json'], 'hello');
    const early = await Promise.race([
      listener.exited.then(() => 'woken'),
      new Promise((resolve) => setTimeout(() => resolve('waits'), 3_000)),
    ]);
    expect([early, listener.stderr()]).toEqual(['waits', '']);
    const { row } = await examined(home);
    expect(row('listener')).toMatchObject({
      level: 'warn',
      text: expect.stringContaining('"one" (server), "two" (listener)'),
      hint: expect.stringContaining('one POSTBELL_SESSION'),
    });
  });

  it.each([
    ['one pinned id', { POSTBELL_SESSION: 'one' }],
    ['the host\u2019s own id, which the store links to the pinned one', {}],
  ])(
    'with one data directory and %s: it is woken, and doctor has nothing to say of them',
    async (_ids, more: Env) => {
      await serve({ POSTBELL_SESSION: 'one' });
      const listener = await listen(dataOf(home), more);
      expect((await examined(home)).row('listener').text).not.toMatch(/different (stores|ids)/);
      await answer(home.env, home.project, ['send', 'alice', '--json'], 'hello');
      expect((await listener.exited).code).toBe(2);
    },
  );

  it('takes nothing of other processes but what says where their store is', async () => {
    await serve({ SOME_SECRET: 'never-shown', POSTBELL_SESSION: 'one' });
    await listen(path.join(home.dir, 'other'), { ANOTHER_SECRET: 'never-shown' });
    home.atEnd(() => stopRouter({ ...home.env, POSTBELL_HOME: path.join(home.dir, 'other') }, home.project));
    const report = await examined(home);
    expect(report.row('listener').text).toContain('different stores');
    expect(JSON.stringify(report.rows)).not.toContain('never-shown');
  });
});
