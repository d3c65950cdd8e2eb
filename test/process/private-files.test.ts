// Files of the account: what Postbell makes is private whatever the umask; what it finds otherwise is neither used nor mended.

import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { fakeCodex } from './codex.ts';
import { type Home, makeHome, until } from './home.ts';
import { runHook } from './hook.ts';
import { answer, postbell } from './postbell.ts';
import { openSession } from './session.ts';

const thread = '01a2359b-9716-7d71-8e13-ff19cf36a487';
const isRoot = process.getuid?.() === 0;
let home: Home;
beforeEach(() => {
  home = makeHome();
  const { bin } = fakeCodex(home.dir);
  home.env.PATH = `${bin}:${home.env.PATH}`;
});
afterEach(() => home.end());

const data = (...parts: string[]) => path.join(home.env.POSTBELL_HOME as string, ...parts);
const inRuntime = (name: RegExp): string =>
  data('runtime', readdirSync(data('runtime')).find((one) => name.test(one)) as string);

const setUp = async (...words: string[]): Promise<string> => {
  const { code, stderr } = await postbell(home.env, home.project, ['agent', 'setup', ...words]);
  expect([words, code, stderr]).toEqual([words, 0, '']);
  return data('hosts', `${words[0]}.json`);
};
const codexStarts = (source: string) =>
  runHook(
    home,
    'codex-session',
    { session_id: thread, cwd: home.project, hook_event_name: 'SessionStart', source },
    { env: { PLUGIN_ROOT: '/plugin', CLAUDE_PROJECT_DIR: '' }, host: ['--host', 'codex'] },
  );
async function routerRuns(): Promise<void> {
  home.start(['router']);
  await until('the router runs', async () => {
    return (await postbell(home.env, home.project, ['router', 'status'])).code === 0;
  });
}

const hosts: [string, ...string[]][] = [
  ['claude', '--principal', 'a'],
  ['codex', '--principal', 'b'],
  ['codex-session', '--principal', 'c'],
  ['gemini', '--principal', 'd'],
  ['acp', '--principal', 'e', '--command', 'agent --acp'],
];

describe('[SES-002] what Postbell makes', () => {
  it.each(['000', '177'])('is of this account alone under umask %s', async (umask) => {
    const before = process.umask(Number.parseInt(umask, 8));
    home.atEnd(() => process.umask(before));
    await routerRuns();
    for (const host of hosts) await setUp(...host);
    const session = await openSession(home, { CLAUDE_CODE_SESSION_ID: 's1' });
    await answer(home.env, home.project, ['send', 'a', '--json'], 'x');
    const payload = { session_id: 's1', cwd: home.project };
    await runHook(home, 'session-start', { ...payload, source: 'startup' });
    await runHook(home, 'stop-gate', payload);
    expect((await codexStarts('startup')).stderr).toBe('');
    const made = readdirSync(data(), { recursive: true, encoding: 'utf8' });
    for (const name of [
      'router-v1.sock',
      'router.token',
      'hook-outcomes.jsonl',
      ...hosts.map(([host]) => `hosts/${host}.json`),
    ])
      expect(made).toContain(name);
    for (const name of [/^runtime\/codex-\w+\.json$/, /^runtime\/codex-[\w-]+\.sock$/, /^stop-gate\/./])
      expect(made.filter((one) => name.test(one))).not.toEqual([]);
    const modes = ['', ...made].map((name) => {
      const stat = lstatSync(data(name));
      return [name, stat.isDirectory(), (stat.mode & 0o777).toString(8)];
    });
    expect(modes).toEqual(
      modes.map(([name, isDirectory]) => [name, isDirectory, isDirectory ? '700' : '600']),
    );
    await session.close();
  });
});

/** What lies there instead, and back again. */
const faults: Readonly<Record<string, (file: string) => void>> = {
  'is open to others': (file) => chmodSync(file, 0o644),
  ...(isRoot && { 'is of another account': (file: string) => chownSync(file, 65_534, 65_534) }),
  'is a link': (file) => {
    renameSync(file, `${file}.kept`);
    symlinkSync(`${file}.kept`, file);
  },
  'is a FIFO': (file) => {
    renameSync(file, `${file}.kept`);
    execFileSync('mkfifo', ['-m', '600', file]);
  },
};
function mend(file: string): void {
  if (existsSync(`${file}.kept`)) {
    rmSync(file);
    renameSync(`${file}.kept`, file);
  }
  chmodSync(file, 0o600);
  if (isRoot) chownSync(file, 0, 0);
}
const look = (file: string): unknown => {
  const { ino, mode, uid, mtimeMs } = lstatSync(file);
  return { ino, mode, uid, mtimeMs };
};

/** Whoever uses the file says so each time, and leaves it as it is. */
async function refusesEach(file: string, use: () => Promise<{ stderr: string }>): Promise<void> {
  for (const [fault, make] of Object.entries(faults)) {
    make(file);
    const before = look(file);
    const { stderr } = await use();
    expect([fault, stderr]).toEqual([
      fault,
      expect.stringMatching(/^postbell: (?:[^\n]*\. )?insecure_path: /),
    ]);
    expect([fault, look(file)]).toEqual([fault, before]);
    mend(file);
  }
}

describe('[SES-002] a socket, token or config that others may have touched', () => {
  it('of the router is insecure_path', async () => {
    await routerRuns();
    const send = () => postbell(home.env, home.project, ['message', 'discover', '--project', 'p']);
    expect((await send()).stderr).toBe('');
    await refusesEach(data('router-v1.sock'), send);
    await refusesEach(data('router.token'), send);
    expect((await send()).stderr).toBe('');
  });

  it.each(hosts.filter(([host]) => host !== 'codex-session'))(
    'of the runner for %s is insecure_path',
    async (...host) => {
      const file = await setUp(...host);
      const name = host[0] === 'gemini' ? 'acp' : host[0];
      await refusesEach(file, () => postbell(home.env, home.project, ['host', name, '--config', file]));
    },
  );

  it('of an ordinary Codex thread is insecure_path', async () => {
    await refusesEach(await setUp('codex-session', '--principal', 'c'), () => codexStarts('startup'));
  });

  it('of a companion is insecure_path', async () => {
    expect((await codexStarts('startup')).stderr).toBe('');
    await refusesEach(inRuntime(/^codex-\w+\.json$/), () => codexStarts('resume'));
    await refusesEach(inRuntime(/^codex-[\w-]+\.sock$/), () => codexStarts('resume'));
    expect((await codexStarts('resume')).stderr).toBe('');
  });
});
