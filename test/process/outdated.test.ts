// Two installed versions beside each other: the newer one gets its router, by itself or by the printed command.

import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { openStore } from '../../src/store/open.ts';
import { bundle } from '../../tools/build.mjs';
import { fakeCodex } from './codex.ts';
import { type Home, makeHome, type Started, until } from './home.ts';
import { runHook } from './hook.ts';
import { alive, answer, postbell, root } from './postbell.ts';
import { liveCards, openSession } from './session.ts';

let home: Home;
let data: string;
beforeEach(() => {
  home = makeHome();
  data = home.env.POSTBELL_HOME as string;
});
afterEach(() => home.end());

const projectOf = async () =>
  (await answer(home.env, home.project, ['send', 'nobody', '--json'], 'x')).project as string;

/** Another installation of the product, as another version. */
async function install(version: string): Promise<string> {
  const at = path.join(home.dir, `installed-${version}`);
  mkdirSync(at);
  symlinkSync(path.join(root, 'node_modules'), path.join(at, 'node_modules'));
  await bundle(path.join(at, 'dist'), version);
  return path.join(at, 'dist', 'postbell.cjs');
}

/** A router of days gone by: it takes registrations, and tells no version. Its lock holder may have written who it is. */
const formerRouter = `
  const net = require('node:net');
  const { chmodSync, writeFileSync } = require('node:fs');
  const [, , , at, token] = process.argv;
  writeFileSync(token, 'x\\n', { mode: 0o600 });
  net.createServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      for (const line of String(chunk).split('\\n').filter(Boolean)) {
        const { request_id } = JSON.parse(line);
        const answer = { ok: true, connection_id: 'c', generation: 1, lease_ms: 60000, drain_scheduled: false };
        socket.write(JSON.stringify({ v: 1, hops: 0, request_id, ...answer }) + '\\n');
      }
    });
  }).listen(at, () => { chmodSync(at, 0o600); console.log('up'); });
`;

async function startFormer(): Promise<number> {
  const words = [path.join(data, 'router-v1.sock'), path.join(data, 'router.token')];
  const former = spawn(process.execPath, ['-e', formerRouter, 'postbell', 'router', ...words]);
  home.atEnd(() => former.kill('SIGKILL'));
  await new Promise((resolve) => former.stdout.once('data', resolve));
  return former.pid as number;
}

/** A session's server whose stderr is read; it goes on until the end. */
function startServer(id: string): Started {
  const started = home.start(['mcp'], { CLAUDE_CODE_SESSION_ID: id, CLAUDE_PROJECT_DIR: home.project });
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 't', version: '1' } };
  const lines = [{ id: 1, method: 'initialize', params }, { method: 'notifications/initialized' }];
  for (const line of lines) started.child.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', ...line })}\n`);
  return started;
}

const printed = (server: Started): string | undefined =>
  /router_outdated: .* end it: (kill .*) \(it is replaced by itself/.exec(server.stderr())?.[1];

const run = (line: string): Promise<number | null> =>
  new Promise((resolve) => spawn('sh', ['-c', line]).on('close', resolve));

describe('an installed version that is newer than the running router', () => {
  it('[SES-081] has its own started, and the sessions of the former one go on with that', async () => {
    const former = await install('0.0.9');
    const project = await projectOf();
    await openSession(home, { CLAUDE_CODE_SESSION_ID: 'old' }, [], former);
    await liveCards(home, project, 1);
    const before = await answer(home.env, home.project, ['router', 'status']);
    expect(before.postbell_version).toBe('0.0.9');
    await openSession(home, { CLAUDE_CODE_SESSION_ID: 'new' });
    const cards = await liveCards(home, project, 2);
    expect(new Set(cards.map(({ session_id }) => session_id))).toEqual(new Set(['new', 'old']));
    const after = await answer(home.env, home.project, ['router', 'status']);
    expect(after.postbell_version).toBe('0.1.0');
    expect(after.pid).not.toBe(before.pid);
    await until('the former one is gone', () => !alive(before.pid as number));
    await answer(home.env, home.project, ['router', 'stop']);
    await until('it has stopped', () => !alive(after.pid as number));
    // The sessions start one again, and it is not the superseded version.
    await liveCards(home, project, 2);
    expect(await answer(home.env, home.project, ['router', 'status'])).toMatchObject({
      postbell_version: '0.1.0',
    });
  }, 60_000);
});

describe('a live view of the former version', () => {
  it('gives its router up and watches on', async () => {
    const former = await install('0.0.9');
    const project = await projectOf();
    const up = spawn(process.execPath, [former, 'up'], { cwd: home.project, env: home.env });
    home.atEnd(() => up.kill('SIGKILL'));
    let view = '';
    up.stdout.on('data', (chunk) => (view += String(chunk)));
    await until('it runs', () => view.includes('router running'));
    await openSession(home, { CLAUDE_CODE_SESSION_ID: 's1' });
    await liveCards(home, project, 1);
    const { pid, postbell_version } = await answer(home.env, home.project, ['router', 'status']);
    expect([postbell_version, pid === up.pid]).toEqual(['0.1.0', false]);
    await until('it shows what happens', () => view.includes('session "s1"'));
    expect(alive(up.pid as number)).toBe(true);
    up.kill('SIGTERM');
    expect(await new Promise((ended) => up.on('close', ended))).toBe(0);
  });
});

describe('a router that tells no version', () => {
  it('[SES-082] is named to the person whose Codex thread cannot be registered, and in the log, once', async () => {
    await projectOf();
    await startFormer();
    const session_id = '01a2359b-9716-7d71-8e13-ff19cf36a487';
    const started = { session_id, cwd: home.project, hook_event_name: 'SessionStart', source: 'startup' };
    const env = { PLUGIN_ROOT: '/plugin', PATH: `${fakeCodex(home.dir).bin}:${home.env.PATH}` };
    const of = { env, host: ['--host', 'codex'] };
    const { stderr } = await runHook(home, 'codex-session', { ...started, transcript_path: '/t' }, of);
    expect(stderr).toMatch(/^postbell: session registration failed\. router_outdated: .* end it: kill .*\n$/);
    const log = readFileSync(path.join(data, 'codex-companion.log'), 'utf8');
    expect(log.match(/router_outdated/g)).toHaveLength(1);
  });

  it.for(['its record', 'its socket', 'its socket, where its record is of another process'])(
    '[SES-082] is refused with the command that stops exactly it, by %s; then the installed one is started',
    async (by, context) => {
      const byRecord = by === 'its record';
      if (!byRecord && (await run('command -v lsof >/dev/null')) !== 0) context.skip();
      const project = await projectOf();
      const pid = await startFormer();
      const bystander = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)', 'router']);
      home.atEnd(() => bystander.kill('SIGKILL'));
      if (by !== 'its socket') {
        const store = await openStore({
          path: path.join(data, 'postbell.db'),
          clock: systemClock,
          random: systemRandom,
        });
        const socket = path.join(data, 'router-v1.sock');
        const named = byRecord ? pid : (bystander.pid as number);
        await store.write((tx) =>
          tx.routers.began({ instance: 'run_old', pid: named, version: '0.0.1', socket, started_at: 'then' }),
        );
        store.close();
      }
      const server = startServer('s1');
      await until('it says so', () => printed(server) !== undefined);
      const line = printed(server) as string;
      expect(line).toMatch(byRecord ? new RegExp(`^kill ${pid}$`) : /^kill \$\(lsof -U /);
      expect(alive(pid)).toBe(true);
      expect(await run(line)).toBe(0);
      await until('it has ended', () => !alive(pid));
      expect(alive(bystander.pid as number)).toBe(true);
      await openSession(home, { CLAUDE_CODE_SESSION_ID: 's2' });
      await until('the installed one runs', async () => {
        const { code, stdout } = await postbell(home.env, home.project, ['router', 'status']);
        return code === 0 && stdout.includes('"postbell_version":"0.1.0"');
      });
      await until('s2 is there', async () => {
        const words = ['message', 'discover', '--project', project];
        const { stdout } = await postbell(home.env, home.project, words);
        return stdout.includes('"session_id":"s2"');
      });
    },
  );
});
