// The rows that are asked for by a variable, the one of the Claude channel, and the one of old identifiers.

import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { until } from './home.ts';
import { changes, examined, type Installation, json, makeInstallation, snapshot } from './installation.ts';
import { answer, program, root } from './postbell.ts';
import { processesOf } from './processes.ts';
import { tablesOf } from './tables.ts';

let at: Installation;
beforeEach(async () => {
  at = await makeInstallation();
});
afterEach(() => at.end());

const capability = { POSTBELL_DOCTOR_PROBE_CAPABILITY: '1' };
const router = { POSTBELL_DOCTOR_PROBE_ROUTER: '1' };
const socket = () => path.join(at.data, 'router-v1.sock');

const startRouter = async () => {
  const started = at.start(['router']);
  await until('the router runs', () => existsSync(socket()));
  return started;
};

const tables = () => tablesOf(path.join(at.data, 'postbell.db'));

/** Processes that live in this home, or in one that a probe makes and throws away. */
const processes = () => processesOf(at.dir).map(({ pid, words }) => [pid, words.join(' ')]);

/** Programs in the places of hosts, each of which notes its starts, and a temporary directory in the home. */
function fakeHosts() {
  const log = path.join(at.dir, 'starts');
  const temporary = path.join(at.dir, 'tmp');
  mkdirSync(temporary);
  writeFileSync(log, '');
  for (const host of ['claude', 'codex', 'gemini', 'opencode', 'codex-acp', 'claude-agent-acp'])
    writeFileSync(path.join(at.bin, host), `#!/bin/sh\necho "${host} $*" >> '${log}'\n`, { mode: 0o755 });
  return { env: { TMPDIR: temporary }, hosts: () => readFileSync(log, 'utf8') };
}

/** The commands of Postbell that ran in this home, or in one below it, while `run` did. */
async function commandsDuring(run: () => Promise<unknown>): Promise<string[]> {
  const seen = new Set<string>();
  const look = setInterval(() => {
    for (const { words } of processesOf(at.dir))
      if (path.basename(words[1] ?? '') === path.basename(program)) seen.add(words.slice(2).join(' '));
  }, 5);
  await run().finally(() => clearInterval(look));
  return [...seen].sort();
}

describe('probes', () => {
  it('[SES-131] run only when asked for; else they are not verified, as information', async () => {
    for (const more of [{}, { POSTBELL_DOCTOR_PROBE_CAPABILITY: '0', POSTBELL_DOCTOR_PROBE_ROUTER: '' }]) {
      const { row, verdict } = await examined(at, more);
      for (const id of ['probe-capability', 'probe-router'])
        expect(row(id)).toMatchObject({ level: 'info', text: 'not verified' });
      expect(verdict).toBe('PASS');
    }
    const { row, code } = await examined(at, { ...capability, ...router });
    expect(row('probe-capability').level).toBe('pass');
    expect([row('probe-router').level, code]).toEqual(['fail', 1]);
  });

  it('[SES-132] the capability probe needs no router, and writes nothing to the real store', async () => {
    const [before, store] = [snapshot(at.dir), tables()];
    const { row } = await examined(at, capability);
    expect(row('probe-capability')).toMatchObject({
      level: 'pass',
      text: 'the MCP message schema is there and the adapters load; no host was asked',
    });
    expect(row('router-version').text).toMatch(/^no router runs/);
    expect(changes(before, snapshot(at.dir))).toEqual([]);
    expect(tables()).toEqual(store);
  });

  it('[SES-133] the router probe says reachable, missing, insecure or unreachable', async () => {
    const said = async () => (await examined(at, router)).row('probe-router');
    expect(await said()).toMatchObject({ level: 'fail', text: expect.stringMatching(/^missing: /) });
    const started = await startRouter();
    expect(await said()).toMatchObject({ level: 'pass', text: expect.stringMatching(/^reachable: /) });
    chmodSync(socket(), 0o666);
    expect(await said()).toMatchObject({ level: 'fail', text: expect.stringMatching(/^insecure: /) });
    chmodSync(socket(), 0o600);
    started.child.kill('SIGKILL');
    await started.exited;
    expect(await said()).toMatchObject({ level: 'fail', text: expect.stringMatching(/^unreachable: /) });
  });

  it('[SES-134] start no router and no host, and send, register and wake nothing', async () => {
    const { env, hosts } = fakeHosts();
    const probes = { ...env, ...capability, ...router };
    // What doctor runs, and what the schema is asked of, which registers nobody.
    const commands = ['doctor --json', 'mcp --no-register'];
    await answer(at.env, at.project, ['send', 'bob', '--json'], 'x');
    const alone = { processes: processes(), tables: tables() };
    expect(
      await commandsDuring(async () => {
        expect((await examined(at, probes)).row('probe-capability').level).toBe('pass');
      }),
    ).toEqual(commands);
    expect({ processes: processes(), tables: tables() }).toEqual(alone);
    expect(existsSync(socket())).toBe(false);
    await startRouter();
    const beside = { processes: processes(), tables: tables() };
    expect(beside.processes).toHaveLength(1);
    expect(
      await commandsDuring(async () => {
        const { row } = await examined(at, probes);
        expect(row('probe-router').text).toMatch(/nothing was asked$/);
        expect(row('probe-capability').text).toMatch(/no host was asked$/);
      }),
    ).toEqual([...commands, 'router']);
    expect({ processes: processes(), tables: tables() }).toEqual(beside);
    expect(hosts()).toBe('');
  });

  it('a socket that others could have made is insecure, whoever listens there', async () => {
    const elsewhere = path.join(at.dir, 'open');
    mkdirSync(elsewhere);
    chmodSync(elsewhere, 0o777);
    const server = createServer().listen(path.join(elsewhere, 's'));
    at.atEnd(() => server.close());
    await until('it listens', () => existsSync(path.join(elsewhere, 's')));
    const { row } = await examined(at, { ...router, POSTBELL_ROUTER_SOCKET: path.join(elsewhere, 's') });
    for (const id of ['probe-router', 'router-socket'])
      expect(row(id)).toMatchObject({ level: 'fail', text: expect.stringMatching(/^insecure: /) });
  });
});

describe('[SES-135] the row of the Claude channel', () => {
  const cwd = path.join(root, 'plugins', 'claude-code');
  const file = () => path.join(at.data, 'hosts', 'claude.json');
  const state = () => path.join(at.dir, '.claude.json');
  const entry = (more: object = {}) => ({
    type: 'stdio',
    command: 'postbell',
    args: ['host', 'claude', '--config', file()],
    env: {},
    ...more,
  });
  const config = (more: object = {}, mode = 0o600) => {
    json(file(), { version: 1, host: 'claude', principal_id: 'bob', ...more });
    chmodSync(path.dirname(file()), 0o700);
    chmodSync(file(), mode);
  };
  const register = (server: unknown) => json(state(), { mcpServers: { 'postbell-channel': server } });
  const looked = async () => {
    const before = snapshot(at.dir);
    const { row } = await examined(at, {}, { cwd });
    expect(changes(before, snapshot(at.dir))).toEqual([]);
    return row('claude-channel');
  };

  it('is looked at from a plugin directory alone', async () => {
    expect((await examined(at)).row('claude-channel')).toMatchObject({ level: 'info' });
    expect((await examined(at, { CLAUDE_PLUGIN_ROOT: cwd })).row('claude-channel').level).toBe('warn');
  });

  it('missing: a warning with the registration command; entries of projects are not looked at', async () => {
    config();
    const missing = {
      level: 'warn',
      text: expect.stringMatching(/^missing: /),
      hint: 'claude mcp add --transport stdio --scope user postbell-channel -- postbell host claude --config FILE',
    };
    expect(await looked()).toMatchObject(missing);
    json(state(), {
      mcpServers: { other: entry() },
      projects: { [cwd]: { mcpServers: { 'postbell-channel': entry() } } },
    });
    expect(await looked()).toMatchObject(missing);
  });

  it('coherent: CONFIGURED, with what that does not prove; a project\u2019s own broken entry changes nothing', async () => {
    config({ server_name: 'postbell-channel', socket: socket() });
    json(state(), {
      mcpServers: { 'postbell-channel': entry() },
      projects: { [cwd]: { mcpServers: { 'postbell-channel': 'broken' } } },
    });
    expect(await looked()).toEqual({
      id: 'claude-channel',
      level: 'pass',
      text: 'CONFIGURED; this proves neither admission of the channel nor that a message was surfaced',
    });
  });

  it.each<[string, () => void]>([
    ['no object', () => register('postbell')],
    ['of another command', () => register(entry({ args: ['host', 'claude'] }))],
    ['of another transport', () => register(entry({ type: 'http' }))],
    ['with a relative file', () => register(entry({ args: ['host', 'claude', '--config', 'claude.json'] }))],
    ['with arguments that are no text', () => register(entry({ args: ['host', 'claude', '--config', 7] }))],
  ])('an entry that is %s: malformed, a warning', async (_, break_) => {
    config();
    break_();
    expect(await looked()).toMatchObject({
      level: 'warn',
      text: expect.stringMatching(/^malformed: /),
      hint: expect.stringContaining('claude mcp add --transport stdio --scope user postbell-channel'),
    });
  });

  it.each<[string, RegExp, () => void]>([
    ['is no JSON', /^malformed: /, () => writeFileSync(file(), '{"version": 1,')],
    ['names nobody', /^malformed: /, () => config({ principal_id: '/root' })],
    ['is of another host', /^malformed: /, () => config({ host: 'codex' })],
    [
      'is gone',
      /^stale: /,
      () => register(entry({ args: ['host', 'claude', '--config', '/nowhere/claude.json'] })),
    ],
    ['is of another server', /^stale: /, () => config({ server_name: 'old-channel' })],
    ['names another router', /^stale: /, () => config({ socket: '/elsewhere/router-v1.sock' })],
    ['is open to others', /^insecure: /, () => config({}, 0o640)],
  ])('a target that %s: a warning', async (_, says, break_) => {
    config();
    register(entry());
    break_();
    expect(await looked()).toMatchObject({ level: 'warn', text: expect.stringMatching(says) });
  });
});

describe('[SES-137] the row of identifiers', () => {
  it('counts those that break today\u2019s rules, and changes no byte', async () => {
    await answer(at.env, at.project, ['send', 'bob', '--json'], 'x');
    const database = new BetterSqlite3(path.join(at.data, 'postbell.db'));
    const rename = (sql: string, ...values: string[]) => database.prepare(sql).run(...values);
    rename('UPDATE message SET sender = ?', 'cafe\u0301 ');
    rename('UPDATE delivery SET recipient = ?', '/home/bob');
    rename('INSERT INTO principal VALUES (?, ?, 0)', 'C:\\shop', ' bob');
    database.close();
    const before = snapshot(at.dir);
    const { row, verdict } = await examined(at);
    expect(row('scope')).toMatchObject({
      level: 'info',
      text: expect.stringMatching(
        /^4 of \d+ names of projects, inboxes and sessions break today\u2019s rules \((?=.*path-shaped 2)(?=.*not NFC 1)(?=.*untrimmed 2).*\); nothing is changed$/,
      ),
    });
    expect(verdict).toBe('PASS');
    expect(changes(before, snapshot(at.dir))).toEqual([]);
  });
});
