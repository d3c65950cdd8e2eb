// One account owns the store, the router and the hosts: what another account of the machine is kept from, and what people are
// told about it.

import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Home, makeHome, until } from './home.ts';
import { type Env, finished, postbell, root } from './postbell.ts';
import { openSession } from './session.ts';

let home: Home;
beforeEach(() => {
  home = makeHome();
  // What keeps others out below is Postbell's own.
  chmodSync(home.dir, 0o755);
});
afterEach(() => home.end());

const data = () => home.env.POSTBELL_HOME as string;
const isRoot = process.getuid?.() === 0;

/** What another account gets that connects to the socket; of root's tests, one that really is another. */
async function connectAsOther(socket: string): Promise<string> {
  const script = `require('node:net').connect(process.argv[1])
    .on('connect', () => { console.log('connected'); process.exit(0); })
    .on('error', ({ code }) => console.log(code))`;
  const words = ['--reuid=65534', '--regid=65534', '--clear-groups', process.execPath, '-e', script, socket];
  return (await finished('setpriv', words, home.env, '/')).stdout.trim();
}

async function routerAt(socket: string, more: Env = {}): Promise<void> {
  const router = home.start(['router'], more);
  await until('the router runs', async () => {
    const { code } = await postbell({ ...home.env, ...more }, home.project, ['router', 'status']);
    return code === 0;
  });
  home.atEnd(() => router.child.kill('SIGTERM'));
  expect(statSync(socket).mode & 0o777).toBe(0o600);
}

describe('[SES-003] another account', () => {
  it('cannot connect to the router, neither in the data directory nor where everybody may look', async () => {
    const socket = path.join(data(), 'router-v1.sock');
    await routerAt(socket);
    expect(statSync(data()).mode & 0o777).toBe(0o700);
    // Not below the home, which may lie in a folder that is nobody else's.
    const open = mkdtempSync('/tmp/pb-open-');
    home.atLast(() => rmSync(open, { recursive: true, force: true }));
    chmodSync(open, 0o755);
    const shown = path.join(open, 'r.sock');
    await routerAt(shown, { POSTBELL_HOME: path.join(home.dir, 'more'), POSTBELL_ROUTER_SOCKET: shown });
    if (!isRoot) return;
    expect([await connectAsOther(socket), await connectAsOther(shown)]).toEqual(['EACCES', 'EACCES']);
    // That it is the account, and nothing else about the way of asking.
    chmodSync(shown, 0o666);
    expect(await connectAsOther(shown)).toBe('connected');
  });

  it('a config in a directory that others can write is insecure_path, and of no session', async () => {
    const hosts = path.join(data(), 'hosts');
    mkdirSync(hosts, { recursive: true, mode: 0o700 });
    chmodSync(data(), 0o700);
    const config = path.join(hosts, 'claude.json');
    writeFileSync(config, JSON.stringify({ version: 1, host: 'claude', principal_id: 'bob' }), {
      mode: 0o600,
    });
    const principal = async (id: string) => {
      const session = await openSession(home, { CLAUDE_CODE_SESSION_ID: id });
      const { data: answer } = await session.call('get_my_session_id', {});
      await session.close();
      return answer.principal_id ?? answer.recipient;
    };
    expect(await principal('s1')).toBe('bob');
    chmodSync(hosts, 0o777);
    const run = await postbell(home.env, home.project, ['host', 'claude', '--config', config]);
    expect([run.code, run.stdout, run.stderr]).toEqual([
      1,
      '',
      expect.stringMatching(/^postbell: insecure_path: /),
    ]);
    expect(await principal('s2')).toBe('claude-session-s2');
  });

  it('setup and the README say where no token and no config is kept', async () => {
    const setup = await postbell(home.env, home.project, ['agent', 'setup', 'claude', '--principal', 'bob']);
    const readme = readFileSync(path.join(root, 'README.md'), 'utf8').replace(/\s+/g, ' ');
    for (const text of [setup.stdout, readme]) {
      expect(text).toMatch(
        /\bKeep no [^.]*\bconfig\b[^.]*\bin a repository, a shared dot-file or a world-readable directory/,
      );
      expect(text).toMatch(/\bKeep no [^.]*\btoken\b/);
    }
    expect(readme).toContain('another account of the machine cannot connect');
  });
});
