// Sessions and the router find each other: who starts it, who never does, and what a death of either leaves.

import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { openStore } from '../../src/store/open.ts';
import { registration } from '../contract/desk.ts';
import { type Home, makeHome, type Started, until } from './home.ts';
import { answer, postbell, program } from './postbell.ts';
import { liveCards, openSession } from './session.ts';

let home: Home;
let socket: string;

beforeEach(() => {
  home = makeHome();
  socket = path.join(home.env.POSTBELL_HOME as string, 'router-v1.sock');
});
afterEach(() => home.end());

async function running(): Promise<Started> {
  const started = home.start(['router']);
  await until(
    'the router answers',
    async () => (await postbell(home.env, home.project, ['router', 'status'])).code === 0,
  );
  return started;
}

const projectOf = async () =>
  (await answer(home.env, home.project, ['send', 'alice', '--json'], 'x')).project as string;
const discover = (project: string) =>
  postbell(home.env, home.project, ['message', 'discover', '--project', project]);
const unreachable = {
  code: 1,
  stdout: '',
  stderr: expect.stringMatching(/^postbell: router_unreachable: [^\n]*\n$/),
};

describe('a router that is not there', () => {
  it('[SES-060] is an error, never an empty list: for a command before its first start and after its end, and for a tool', async () => {
    expect(await discover('p')).toEqual(unreachable);
    const first = await running();
    expect(await discover('p')).toMatchObject({ code: 0, stdout: '{"cards":[]}\n' });
    first.child.kill('SIGTERM');
    await first.exited;
    expect(await discover('p')).toEqual(unreachable);
    const second = await running();
    second.child.kill('SIGKILL');
    await second.exited;
    expect(existsSync(socket)).toBe(true);
    expect(await discover('p')).toEqual(unreachable);
    const nowhere = { CLAUDE_CODE_SESSION_ID: 's1', POSTBELL_ROUTER_SOCKET: `/${'x'.repeat(110)}` };
    const session = await openSession(home, nowhere);
    const { isError, data } = await session.call('message', { action: 'discover' });
    expect([isError, Object.keys(data)]).toEqual([true, ['error']]);
    expect(data.error).toMatchObject({ code: 'router_unreachable' });
  });

  it('[SES-066] is started by no command and no hook', async () => {
    const project = await projectOf();
    const words = ['send', 's1', '--session'];
    expect((await postbell(home.env, home.project, words, 'x')).code).toBe(1);
    expect(await discover(project)).toEqual(unreachable);
    const env = { ...home.env, CLAUDE_PROJECT_DIR: home.project };
    const payload = JSON.stringify({ session_id: 's1', source: 'startup' });
    const hook = await postbell(env, home.project, ['hook', 'session-start', '--host', 'claude'], payload);
    expect([hook.code, hook.stdout]).toEqual([0, expect.stringContaining('Postbell: this session is')]);
    const listener = home.start(['wait'], env);
    listener.child.stdin?.end(payload);
    for (const asked of [
      ['router', 'status'],
      ['router', 'stop'],
      ['inbox', 'receive', '--recipient', 'bob'],
    ])
      await postbell(home.env, home.project, asked);
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect(listener.child.exitCode).toBeNull();
    expect(existsSync(socket)).toBe(false);
    expect(existsSync(path.join(path.dirname(socket), 'router-v1.lock'))).toBe(false);
  });

  it('[SES-066] is started by a session that finds no socket, or a dead one, and outlives it', async () => {
    const project = await projectOf();
    const routers: number[] = [];
    for (const found of ['no socket', 'a dead one']) {
      expect(existsSync(socket)).toBe(found === 'a dead one');
      const session = await openSession(home, { CLAUDE_CODE_SESSION_ID: 's1' });
      await liveCards(home, project, 1);
      const pid = (await answer(home.env, home.project, ['router', 'status'])).pid as number;
      await session.close();
      await liveCards(home, project, 0);
      expect((await answer(home.env, home.project, ['router', 'status'])).pid).toBe(pid);
      expect(readFileSync(`/proc/${pid}/environ`, 'utf8')).not.toContain('CLAUDE');
      routers.push(pid);
      if (found === 'no socket') process.kill(pid, 'SIGKILL');
      if (found === 'no socket') await until('it is dead', async () => (await discover(project)).code === 1);
    }
    expect(new Set(routers).size).toBe(2);
  });

  it('[SES-066] outlives also the whole group of processes that started it', async () => {
    const project = await projectOf();
    const env = { ...home.env, CLAUDE_CODE_SESSION_ID: 's1', CLAUDE_PROJECT_DIR: home.project };
    const host = spawn(process.execPath, [program, 'mcp'], { cwd: home.dir, env, detached: true });
    const group = -(host.pid as number);
    home.atEnd(() => host.exitCode ?? host.signalCode ?? process.kill(group, 'SIGKILL'));
    const clientInfo = { name: 't', version: '1' };
    const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo };
    for (const line of [{ id: 1, method: 'initialize', params }, { method: 'notifications/initialized' }])
      host.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...line })}\n`);
    await liveCards(home, project, 1);
    const { pid } = await answer(home.env, home.project, ['router', 'status']);
    process.kill(group, 'SIGKILL');
    await liveCards(home, project, 0);
    expect((await answer(home.env, home.project, ['router', 'status'])).pid).toBe(pid);
  });
});

describe('discover', () => {
  it('[MSG-175] answers with 50 cards unless told otherwise, and takes 1 to 100', async () => {
    await running();
    const file = path.join(path.dirname(socket), 'postbell.db');
    const store = await openStore({ path: file, clock: systemClock, random: systemRandom });
    await store.write((tx) => {
      for (let n = 1; n <= 51; n += 1)
        tx.sessions.connect({
          registration: registration(`s${n}`),
          connection_id: `con_${n}`,
          generation: 1,
          router_instance: 'run_test',
          lease_expires_at_ms: Date.now() + 60_000,
          at: new Date().toISOString(),
        });
    });
    store.close();
    const found = async (...words: string[]) => {
      const all = ['message', 'discover', '--project', 'shop', ...words];
      return ((await answer(home.env, home.project, all)).cards as object[]).length;
    };
    expect([await found(), await found('--limit', '1'), await found('--limit', '100')]).toEqual([50, 1, 51]);
    for (const limit of ['0', '101', '1.5', 'x']) {
      const words = ['message', 'discover', '--project', 'shop', '--limit', limit];
      const { code, stdout, stderr } = await postbell(home.env, home.project, words);
      expect([code, stdout, stderr]).toEqual([
        1,
        '',
        expect.stringMatching(/^postbell: invalid_request: limit/),
      ]);
    }
  });
});

describe('a death', () => {
  it('[SES-039] of a session\u2019s process takes its card within a second', async () => {
    await running();
    const project = await projectOf();
    const session = await openSession(home, { CLAUDE_CODE_SESSION_ID: 's1' });
    await liveCards(home, project, 1);
    process.kill(session.pid, 'SIGKILL');
    const began = Date.now();
    await liveCards(home, project, 0);
    expect(Date.now() - began).toBeLessThan(1_500);
  });

  it('[SES-040, SES-041] of the router leaves no card and no attempt that goes on: the next one closes what it left open, until hosts register', async () => {
    const first = await running();
    const project = await projectOf();
    const session = await openSession(home, { CLAUDE_CODE_SESSION_ID: 's1' });
    await liveCards(home, project, 1);
    process.kill(session.pid, 'SIGSTOP');
    home.atEnd(() => process.kill(session.pid, 'SIGCONT'));
    const rows = (sql: string) => {
      const store = new BetterSqlite3(path.join(path.dirname(socket), 'postbell.db'), { readonly: true });
      const found = store.prepare(sql).all() as Record<string, string | null>[];
      store.close();
      return found;
    };
    const attempts = () => rows('SELECT state, failure_code FROM attempt');
    const told = postbell(home.env, home.project, ['send', 's1', '--session'], 'to a session that hangs');
    await until('it is handed over', () => attempts().length === 1);
    first.child.kill('SIGKILL');
    await first.exited;
    const reasons = () =>
      rows('SELECT disconnect_reason FROM connection ORDER BY rowid').map((row) => row.disconnect_reason);
    expect([reasons(), attempts()]).toEqual([[null], [{ state: 'started', failure_code: null }]]);
    expect((await told).stderr).toMatch(/router_(unreachable|timeout)/);
    await running();
    expect(JSON.parse((await discover(project)).stdout)).toEqual({ cards: [] });
    expect(reasons()).toEqual(['router_restart']);
    expect(attempts()).toEqual([{ state: 'adapter_failed', failure_code: 'adapter_disconnected' }]);
    process.kill(session.pid, 'SIGCONT');
    expect(await liveCards(home, project, 1)).toMatchObject([{ session_id: 's1', generation: 2 }]);
    expect(reasons()).toEqual(['router_restart', null]);
  });
});
