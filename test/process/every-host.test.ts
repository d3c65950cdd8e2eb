// Every runner and server of the product at once, each with its host: what may not be seen of a message, nor of a host's own
// secrets, in any of their processes.

import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AcpHome, acpHome } from './acp-runner.ts';
import { channelHost, clientInfo } from './channel-host.ts';
import { codexRunners } from './codex-runner.ts';
import { type FakeHosts, fakeHosts } from './fake-hosts.ts';
import { type Home, type Started, until } from './home.ts';
import { runHook } from './hook.ts';
import { postbell, root } from './postbell.ts';
import { type Process, processesOf } from './processes.ts';
import { openSession, type Session } from './session.ts';
import { typed } from './typed.ts';

const body = `SENTINEL-4b1d${'x'.repeat(65_000)}`;
const secret = 'SECRET-77aa';
const hostSecrets = { CLAUDE_CODE_MESSAGING_SOCKET: `/tmp/${secret}`, CLAUDE_CODE_MESSAGING_TOKEN: secret };
const thread = '0199aaaa-0000-7000-8000-000000000001';

let acp: AcpHome;
let home: Home;
let fakes: FakeHosts;
const sessions: Session[] = [];
const runners: Started[] = [];
/** What was pushed to the channel. */
let pushed: () => { content: string }[];
/** Words and environment of every process of ours, as they were when the mail had come. */
let looked: Process[];

async function send(recipient: string): Promise<void> {
  const letter = {
    project: acp.project,
    sender: 'alice',
    recipient,
    payload: body,
    idempotency_key: recipient,
  };
  const [words, input] = typed('send', letter);
  expect((await postbell(home.env, home.project, words, input)).code).toBe(0);
}

/** Everything that holds a session: the agent of ACP, an app-server, a companion, a listener's server and a channel's. */
beforeAll(async () => {
  acp = await acpHome();
  ({ home } = acp);
  fakes = fakeHosts(home.dir);
  const env = { ...hostSecrets, PATH: `${fakes.bin}:${home.env.PATH}` };
  acp.turn('none');
  runners.push(await acp.running(env));
  const codex = codexRunners(home);
  codex.configure({ principal_id: 'managed' });
  runners.push(await codex.running(env));
  const start = { session_id: thread, cwd: home.project, hook_event_name: 'SessionStart', source: 'startup' };
  const hooked = { env: { ...env, PLUGIN_ROOT: '/x' }, host: ['--host', 'codex'] };
  const { records } = await runHook(home, 'codex-session', start, hooked);
  expect(records).toMatchObject([{ outcome: 'notified', reason: 'companion started' }]);
  sessions.push(
    await openSession(home, { ...env, CLAUDE_CODE_SESSION_ID: 's1', POSTBELL_RECIPIENT: 'listening' }),
  );
  const pushing = channelHost(home, ['mcp'], {
    ...env,
    CLAUDE_CODE_SESSION_ID: 'c1',
    POSTBELL_RECIPIENT: 'channelled',
    POSTBELL_CHANNELS: '1',
  });
  await pushing.begin();
  pushing.say({ method: 'notifications/initialized' });
  runners.push(pushing);
  pushed = pushing.pushed;
  const bells = async () => (await acp.cards()).map(({ bell }) => String(bell)).sort();
  await until('all are registered', async () => (await bells()).length === 5);
  expect(await bells()).toEqual(['acp', 'channel', 'codex-queue', 'codex-queue', 'listener']);
  for (const name of ['builder', 'managed', `codex-thread-${thread}`, 'listening', 'channelled'])
    await send(name);
  await until('all were rung', () => {
    const begun = readLog().some((line) => line.includes('turn/start'));
    const queued = fakes.starts('codex').some(({ argv }) => argv[0] === 'queue');
    return begun && queued && acp.log('prompt').length === 1 && pushed().length === 1;
  });
  looked = processesOf(home.dir);
}, 60_000);
afterAll(async () => {
  for (const session of sessions) await session.close();
  await home.end();
});

/** What the app-server in the place of Codex was asked. */
const readLog = (): string[] =>
  readFileSync(path.join(fakes.bin, 'log.jsonl'), 'utf8').split('\n').filter(Boolean);
const wordsOf = (name: string) => fakes.starts(name).map(({ argv }) => argv);

/** Files of the data directory, but for the store. */
const files = () => {
  const data = home.env.POSTBELL_HOME as string;
  return readdirSync(data, { withFileTypes: true, recursive: true })
    .filter((file) => file.isFile() && !file.name.startsWith('postbell.db'))
    .map((file) => `${file.name}\n${readFileSync(path.join(file.parentPath, file.name), 'utf8')}`);
};

describe('a body', () => {
  it('[HOST-003, INB-059] of 64 KiB is in no argument, environment, log or file name of any child or adapter, and in no notice', () => {
    const shown = [
      ...looked.flatMap(({ words, environment }) => [...words, ...environment]),
      ...fakes.starts().map((one) => JSON.stringify(one)),
      ...readLog(),
      ...acp.log().map((one) => JSON.stringify(one)),
      ...pushed().map(({ content }) => content),
      ...runners.map(({ stderr }) => stderr()),
      ...sessions.map((one) => one.stderr()),
      ...files(),
      ...readdirSync(home.dir, { recursive: true, encoding: 'utf8' }),
    ];
    expect(shown.length).toBeGreaterThan(30);
    expect(shown.filter((text) => text.includes('SENTINEL'))).toEqual([]);
    const rung = [
      ...fakes.starts('codex').flatMap(({ argv }) => (argv[0] === 'queue' ? [argv.at(-1)] : [])),
      ...readLog().filter((line) => line.includes('turn/start')),
      acp.log('prompt')[0]?.text,
      pushed()[0]?.content,
    ];
    expect(rung).toHaveLength(4);
    for (const text of rung) expect(text).toContain('[Postbell inbox notice]');
    for (const argv of wordsOf('codex')) expect(argv.join('\0').length).toBeLessThan(12 * 1_024);
    for (const { words } of looked) expect(words.join('\0').length).toBeLessThan(12 * 1_024);
  });
});

describe('a host\u2019s own socket and token', () => {
  it('[HOST-009] reach no child and no log, and nothing of ours speaks to a terminal, a database or a private socket of a host', async () => {
    const env = { ...home.env, ...hostSecrets, PATH: `${fakes.bin}:${home.env.PATH}` };
    const repository = path.join(home.dir, 'repository');
    execFileSync('git', ['init', '--quiet', repository]);
    await postbell(env, repository, ['send', 'nobody'], 'x');
    await postbell(env, home.project, ['claude']);
    for (const program of ['git', 'codex', 'claude']) expect(fakes.starts(program)).not.toEqual([]);
    // Those that the test started itself were given it.
    const given = new Set([...runners.map(({ pid }) => pid), ...sessions.map(({ pid }) => pid)]);
    const children = looked.filter(({ pid }) => !given.has(pid));
    const companion = children.filter(({ words }) => words.includes('companion'));
    const agents = acp.log('started').map(({ pid }) => pid);
    expect(companion).toHaveLength(1);
    expect(children.map(({ pid }) => pid)).toEqual(expect.arrayContaining(agents));
    const shown = [
      ...children.flatMap(({ words, environment }) => [...words, ...environment]),
      ...fakes.starts().map((one) => JSON.stringify(one)),
      ...acp.log().map((one) => JSON.stringify(one)),
      ...runners.map(({ stderr }) => stderr()),
      ...sessions.map((one) => one.stderr()),
      ...files(),
    ];
    expect(shown.filter((text) => text.includes(secret))).toEqual([]);
    const sources = readdirSync(path.join(root, 'src'), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts'))
      .map((file) => [file, readFileSync(path.join(root, 'src', file), 'utf8')] as const);
    const naming = (word: RegExp) => sources.filter(([, text]) => word.test(text)).map(([file]) => file);
    expect(naming(/capture-pane|send-keys|\btmux\b|TIOCSTI|\bosascript\b|node-pty/)).toEqual([]);
    const ofHosts = (file: string) => file.startsWith('hosts/');
    expect(naming(/sqlite|state_\d*\.db|\.jsonl\b.*rollout/i).filter(ofHosts)).toEqual([]);
    // Where they are dropped, and nowhere else but where a runner names what it keeps from its agent.
    expect(naming(/CLAUDE_CODE_MESSAGING|CODE_MESSAGING_|MESSAGING_\\w/).sort()).toEqual([
      'compose/runner.ts',
      'platform/environment.ts',
    ]);
  });
});

describe('the capability of a channel', () => {
  it.each([
    ['a listener', ['mcp'], { CLAUDE_CODE_SESSION_ID: 'x1' }, undefined],
    [
      'none, unattended',
      ['mcp'],
      { CLAUDE_CODE_SESSION_ID: 'x2', CLAUDE_CODE_SESSION_ATTENDED: '0' },
      undefined,
    ],
    ['none, of no host', ['mcp'], {}, undefined],
    ['the queue of Codex', ['mcp'], { codex: '1' }, undefined],
    ['a prompt of ACP', ['mcp', '--session', 'x3', '--no-register'], {}, undefined],
    [
      'a channel',
      ['mcp'],
      { CLAUDE_CODE_SESSION_ID: 'x4', POSTBELL_CHANNELS: '1' },
      { 'claude/channel': {} },
    ],
    [
      'a channel that registers nothing',
      ['mcp', '--no-register'],
      { CLAUDE_CODE_SESSION_ID: 'x5', POSTBELL_CHANNELS: '1' },
      undefined,
    ],
  ])(
    '[INB-060] is declared by a server whose bell is a channel, and by no other: %s',
    async (_what, words, env, declared) => {
      const server = channelHost(home, words, env as Record<string, string>);
      const name = 'codex' in env ? 'codex-mcp-client' : clientInfo.name;
      const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name, version: '1' } };
      const { result } = await server.ask('initialize', params);
      expect(result?.capabilities).toEqual({
        tools: {},
        ...(declared !== undefined && { experimental: declared }),
      });
      server.child.stdin?.end();
      await server.exited;
    },
  );
});
