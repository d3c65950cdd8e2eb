// Where a session cannot be rung, its sender is told so, and nothing pretends.

import { chmodSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Home, makeHome, until } from './home.ts';
import { answer, type Env, postbell } from './postbell.ts';
import { liveCards, openSession } from './session.ts';

let home: Home;
beforeEach(() => {
  home = makeHome();
});
afterEach(() => home.end());

const projectOf = async () =>
  (await answer(home.env, home.project, ['send', 'nobody', '--json'], 'x')).project as string;

describe('a session that cannot be rung', () => {
  it.each([{ POSTBELL_LISTENER: 'off' }, { CLAUDE_CODE_SESSION_ATTENDED: '0' }])(
    'because of %o has no bell, and an exact send fails closed',
    async (more) => {
      home.start(['router']);
      const project = await projectOf();
      const session = await openSession(home, {
        CLAUDE_CODE_SESSION_ID: 's1',
        POSTBELL_RECIPIENT: 'alice',
        ...more,
      });
      await liveCards(home, project, 1);
      const sent = await answer(home.env, home.project, ['send', 'alice', '--json'], 'hello');
      expect(sent.recipient_presence).toBe('deaf');
      const { code, stderr } = await postbell(home.env, home.project, ['send', 's1', '--session'], 'hello');
      expect(code).toBe(1);
      expect(stderr).toMatch(
        /^postbell: recipient_unavailable: the session was not reached \(no_bell\); the message is kept as msg_/,
      );
      await session.close();
    },
  );

  it('because its project could not be found becomes reachable as soon as it can', async () => {
    home.start(['router']);
    const project = await projectOf();
    rmSync(home.project, { recursive: true });
    const session = await openSession(home, { CLAUDE_CODE_SESSION_ID: 's1', POSTBELL_RECIPIENT: 'alice' });
    const lost = await session.call('receive_messages', {});
    expect(lost.isError).toBe(true);
    mkdirSync(home.project);
    expect((await session.call('receive_messages', {})).isError).toBe(false);
    await liveCards(home, project, 1);
    await session.close();
  });
});

describe('a router that does not answer', () => {
  it('[SES-115] ends a command in its time, and nobody is said to have been told or not', async () => {
    await projectOf();
    const data = home.env.POSTBELL_HOME as string;
    writeFileSync(path.join(data, 'router.token'), 'x\n', { mode: 0o600 });
    const taken: Socket[] = [];
    const silent = createServer((socket) => taken.push(socket));
    const socket = path.join(data, 'router-v1.sock');
    await new Promise<void>((resolve) => silent.listen(socket, resolve));
    chmodSync(socket, 0o600);
    const began = Date.now();
    const status = await postbell(home.env, home.project, ['router', 'status']);
    expect([status.code, status.stderr]).toEqual([1, expect.stringMatching(/^postbell: router_timeout: /)]);
    expect(Date.now() - began).toBeGreaterThanOrEqual(2_000);
    expect(Date.now() - began).toBeLessThan(4_000);
    const sent = await postbell(home.env, home.project, ['send', 'alice'], 'hello');
    expect(sent.stdout).toContain('it is not known whether a session was told');
    expect(Date.now() - began).toBeLessThan(8_000);
    for (const one of taken) one.destroy();
    await new Promise((resolve) => silent.close(resolve));
  });

  it('is not started for ever where there can be none', async () => {
    const more = { CLAUDE_CODE_SESSION_ID: 's1', POSTBELL_ROUTER_SOCKET: `/${'x'.repeat(110)}` };
    const session = await openSession(home, more);
    await until('the store is there', () =>
      existsSync(path.join(home.env.POSTBELL_HOME as string, 'postbell.db')),
    );
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect(existsSync(path.join(home.env.POSTBELL_HOME as string, 'router-v1.lock'))).toBe(false);
    expect((await session.call('receive_messages', {})).isError).toBe(false);
    await session.close();
  });
});

describe('a router whose socket was removed', () => {
  it('makes room, and a session starts another', async () => {
    const first = home.start(['router']);
    const project = await projectOf();
    const session = await openSession(home, { CLAUDE_CODE_SESSION_ID: 's1' });
    await liveCards(home, project, 1);
    rmSync(path.join(home.env.POSTBELL_HOME as string, 'router-v1.sock'));
    expect((await first.exited).code).toBe(0);
    await liveCards(home, project, 1);
    await session.close();
  });
});

describe('a project that git does not name', () => {
  it.each([
    ['slow', 'sleep 30'],
    ['failing', 'exit 3'],
  ])('because it is %s is an error, never another project\u2019s inbox', async (_, script) => {
    const bin = path.join(home.dir, 'bin');
    mkdirSync(bin);
    writeFileSync(path.join(bin, 'git'), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    mkdirSync(path.join(home.project, '.git'));
    const env = { ...home.env, PATH: `${bin}:${home.env.PATH}` };
    const { code, stdout, stderr } = await postbell(env, home.project, ['send', 'alice'], 'hello');
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(/^postbell: project_unavailable: git does not say what repository /);
  });

  it('is the doing of a sandbox, perhaps, where the shell is a host\u2019s: the tools run outside it', async () => {
    // As Codex lays one, empty, over a workspace that is none.
    mkdirSync(path.join(home.project, '.git'));
    const words = ['send', 'alice'];
    const said = async (env: Env) => (await postbell(env, home.project, words, 'hello')).stderr;
    const shell = { ...home.env, CODEX_THREAD_ID: '01a2359b-9716-7d71-8e13-ff19cf36a487' };
    expect(await said(shell)).toMatch(/^postbell: project_unavailable: .*use the Postbell tools/);
    expect(await said(home.env)).not.toContain('sandbox');
  });

  it('is that of the directory, whatever repository the environment points at', async () => {
    const plain = await projectOf();
    const env = { ...home.env, GIT_DIR: '/nowhere' };
    const sent = await answer(env, home.project, ['send', 'alice', '--json'], 'hello');
    expect(sent.project).toBe(plain);
  });
});

describe('a token', () => {
  it('is not said to a socket that others could have made', async () => {
    await projectOf();
    const open = path.join(home.dir, 'open');
    mkdirSync(open);
    chmodSync(open, 0o777);
    const heard: string[] = [];
    const taken: Socket[] = [];
    const spy = createServer((socket) => {
      taken.push(socket);
      socket.on('data', (chunk) => heard.push(String(chunk)));
    });
    const at = path.join(open, 's');
    await new Promise<void>((resolve) => spy.listen(at, resolve));
    writeFileSync(path.join(home.env.POSTBELL_HOME as string, 'router.token'), 'secret\n', { mode: 0o600 });
    const env = { ...home.env, POSTBELL_ROUTER_SOCKET: at };
    const { code, stderr } = await postbell(env, home.project, ['message', 'discover', '--project', 'p']);
    expect([code, heard]).toEqual([1, []]);
    expect(stderr).toMatch(/^postbell: insecure_path: /);
    for (const one of taken) one.destroy();
    await new Promise((resolve) => spy.close(resolve));
  });
});

describe('a listener that cannot take its lock', () => {
  it('says so and ends', async () => {
    await projectOf();
    mkdirSync(path.join(home.env.POSTBELL_HOME as string, 'runtime', 'listener-s1.lock'));
    const { code, stderr } = await postbell(home.env, home.project, ['wait'], '{"session_id":"s1"}');
    expect(code).toBe(1);
    expect(stderr).toMatch(/^postbell: insecure_path: /);
  });
});
