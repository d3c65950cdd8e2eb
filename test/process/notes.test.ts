// What a process says on stderr is a note: where it cannot be written, or nobody reads it, the work goes on.

import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Home, makeHome, until } from './home.ts';
import { answer, type Env, postbell, program } from './postbell.ts';
import { liveCards, openSession } from './session.ts';

let home: Home;
beforeEach(() => {
  home = makeHome();
});
afterEach(() => home.end());

const data = () => home.env.POSTBELL_HOME as string;

/** A command whose stderr is what the shell makes of `redirection`. */
function redirected(words: string, redirection: string, more: Env = {}) {
  const line = `exec node ${program} ${words} ${redirection}`;
  const child = spawn('sh', ['-c', line], { cwd: home.project, env: { ...home.env, ...more } });
  home.atEnd(() => child.kill('SIGKILL'));
  let stdout = '';
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString('utf8')));
  const exited = new Promise<number | null>((resolve) => child.on('close', resolve));
  return { child, stdout: () => stdout, exited };
}

const answers = async () => (await postbell(home.env, home.project, ['router', 'status'])).code === 0;

describe('a router whose log', () => {
  it('cannot be written registers sessions all the same', async () => {
    const { child } = redirected('router', '2>/dev/full');
    await until('it answers', answers);
    const project = (await answer(home.env, home.project, ['send', 'x', '--json'], 'x')).project as string;
    await openSession(home, { CLAUDE_CODE_SESSION_ID: 's1' });
    await liveCards(home, project, 1);
    expect(child.exitCode).toBeNull();
  });

  it('nobody reads goes on answering, and ends at a signal', async () => {
    const { child, exited } = redirected('router', '');
    // A pipe holds 64 KiB, and each registration is a line of more than 100 bytes.
    child.stderr.pause();
    await until('it answers', answers);
    const auth_token = readFileSync(path.join(data(), 'router.token'), 'utf8').trim();
    for (let nth = 0; nth < 700; nth += 1) await register(`s${nth}`, auth_token);
    await until('it answers', answers);
    child.kill('SIGTERM');
    expect(await exited).toBe(0);
  });

  /** Over a connection of its own, so that no limit of one client is met. */
  function register(session_id: string, auth_token: string): Promise<void> {
    const frame = {
      v: 1,
      type: 'register',
      request_id: session_id,
      hops: 0,
      auth_token,
      project: 'p',
      principal_id: 'bob',
      session_id,
      adapter_kind: 'poll',
      bell: 'none',
      host_kind: 'other',
      postbell_version: '0.1.0',
    };
    const socket = connect(path.join(data(), 'router-v1.sock'));
    socket.write(`${JSON.stringify(frame)}\n`);
    return new Promise((resolve, reject) => {
      socket.setTimeout(10_000, () => reject(new Error('no answer')));
      socket.once('data', (chunk: Buffer) => {
        socket.destroy();
        if (String(chunk).includes('"ok":true')) resolve();
        else reject(new Error(String(chunk)));
      });
    });
  }
});

describe('a session\u2019s server whose notes', () => {
  const initialize = {
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'h', version: '1' } },
  };

  it('cannot be written serves its tools', async () => {
    const server = redirected('mcp', '2>/dev/full', {
      CLAUDE_PROJECT_DIR: home.project,
      POSTBELL_RECIPIENT: '/no',
    });
    server.child.stdin.write(`${JSON.stringify(initialize)}\n`);
    await until('it answers', () => server.stdout().includes('"id":1'));
    server.child.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
    server.child.stdin.write('{"jsonrpc":"2.0","id":2,"method":"tools/list"}\n');
    await until('it answers again', () => server.stdout().includes('"id":2'));
    await until('its router runs', answers);
    server.child.stdin.end();
    expect(await server.exited).toBe(0);
  });

  it('lost their reader goes on when its router ends', async () => {
    const server = redirected('mcp', '', {
      CLAUDE_PROJECT_DIR: home.project,
      CLAUDE_CODE_SESSION_ID: 's1',
    });
    server.child.stderr.destroy();
    server.child.stdin.write(`${JSON.stringify(initialize)}\n`);
    server.child.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
    const project = (await answer(home.env, home.project, ['send', 'x', '--json'], 'x')).project as string;
    await until('a router runs', () => existsSync(path.join(data(), 'router-v1.sock')));
    await liveCards(home, project, 1);
    await answer(home.env, home.project, ['router', 'stop']);
    await liveCards(home, project, 1);
    server.child.stdin.write('{"jsonrpc":"2.0","id":2,"method":"tools/list"}\n');
    await until('it answers', () => server.stdout().includes('"id":2'));
  });
});

it('a hook whose note cannot be written ends with 0', async () => {
  const hook = redirected('hook session-start', '2>/dev/full', { POSTBELL_HOME: '/dev/null' });
  hook.child.stdin.end('{"session_id":"s1"}');
  expect(await hook.exited).toBe(0);
});

it('[INB-123, INB-124] a listener whose stderr was closed prints nothing, and leaves its cursor', async () => {
  const session = await openSession(home, { CLAUDE_CODE_SESSION_ID: 's1', POSTBELL_RECIPIENT: 'bob' });
  await answer(home.env, home.project, ['send', 'bob', '--json'], 'x');
  const rows = (table: string) => {
    const store = new BetterSqlite3(path.join(data(), 'postbell.db'), { readonly: true });
    const found = store.prepare(`SELECT * FROM ${table}`).all();
    store.close();
    return found;
  };
  await until('a notice waits', () => rows('listener_row').length === 1);
  const before = rows('listener_cursor');
  for (const closed of ['2>&-', '2>/dev/null', '2>/dev/full']) {
    const wait = redirected('wait --session s1', closed);
    wait.child.stdin.end('{}');
    expect(await wait.exited).toBe(1);
    expect(rows('listener_cursor')).toEqual(before);
  }
  await session.close();
});

it('[INB-124] a listener whose host leaves its stdin open ends with 0 at a signal', async () => {
  const wait = redirected('wait --session s1', '');
  await new Promise((resolve) => setTimeout(resolve, 600));
  wait.child.kill('SIGTERM');
  expect(await wait.exited).toBe(0);
});
