// The channel of a Claude Code session: the runner that a person registered, and the plugin's own server in its place.

import { spawn } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type ChannelHost, channelHost, clientInfo } from './channel-host.ts';
import { type Home, makeHome, until } from './home.ts';
import { alive, answer, type Env, postbell, program, root } from './postbell.ts';
import { ask } from './router-line.ts';
import { liveCards, openSession } from './session.ts';
import { typed } from './typed.ts';

let home: Home;
let project: string;
let config: string;
let keys = 0;

const env = { CLAUDE_CODE_SESSION_ID: 's1' };
const data = (): string => home.env.POSTBELL_HOME as string;
const runner = (more: Env = {}): ChannelHost =>
  channelHost(home, ['host', 'claude', '--config', config], { ...env, ...more });
const plugin = (more: Env = {}): ChannelHost => channelHost(home, ['mcp'], { ...env, ...more });

async function running(server: ChannelHost): Promise<ChannelHost> {
  await server.begin();
  return server;
}

const setUp = async (...more: string[]): Promise<Record<string, unknown>> => {
  const words = ['agent', 'setup', 'claude', '--principal', 'builder', '--json', ...more];
  const said = await answer(home.env, home.project, words);
  config = said.config_path as string;
  return said;
};
const rewrite = (over: object): void =>
  writeFileSync(config, JSON.stringify({ ...JSON.parse(readFileSync(config, 'utf8')), ...over }));

/** Sessions with a channel, each with its registered principal. */
const channels = async (): Promise<Record<string, unknown>[]> => {
  const words = ['message', 'discover', '--project', project, '--detail'];
  const { cards } = await answer(home.env, home.project, words);
  return (cards as Record<string, unknown>[]).filter(({ bell }) => bell === 'channel');
};
const oneChannel = (): Promise<void> =>
  until('there is a channel', async () => (await channels()).length === 1);

const send = async (over: object): Promise<Record<string, unknown>> => {
  const letter = { project, sender: 'alice', recipient: 'builder', payload: 'hello' };
  keys += 1;
  const [words, input] = typed('send', { ...letter, idempotency_key: `key ${keys}`, ...over });
  return answer(home.env, home.project, words, input);
};
const toSession = (recipient = 's1', over: object = {}) =>
  send({ recipient, target_kind: 'session', ...over });

const capability = { 'claude/channel': {} };
const replacedLine = 'replaced by a newer connection for this session; stopping.\n';

beforeEach(async () => {
  home = makeHome();
  home.start(['router']);
  project = (await answer(home.env, home.project, ['send', 'nobody', '--json'], 'x')).project as string;
  await setUp();
});
afterEach(() => home.end());

describe('the channel runner', () => {
  it('[HOST-107] is what the printed command registers, and the host starts it', async () => {
    const said = await setUp('--replace');
    const spec = readFileSync(path.join(root, 'docs', 'spec', 'sessions.md'), 'utf8');
    const documented = /`registration_command` is `([^`]+)`/.exec(spec)?.[1] as string;
    const printed = said.registration_command as string;
    expect(printed).toBe(documented.replace('<file>', config));
    expect(printed).toContain('--scope user postbell-channel --');
    const [program, ...words] = (printed.split(' -- ')[1] as string).split(' ');
    expect(program).toBe('postbell');
    const server = await running(channelHost(home, words, env));
    expect(await liveCards(home, project, 1)).toMatchObject([{ session_id: 's1', principal_id: 'builder' }]);
    await toSession();
    await until('it is pushed', () => server.pushed().length === 1);
  });

  it('[HOST-110] declares the channel and nothing that could answer a permission prompt; it offers no tools', async () => {
    for (const server of [runner(), plugin({ POSTBELL_CHANNELS: '1' })]) {
      const { capabilities } = await server.begin();
      expect(capabilities).toEqual({ tools: {}, experimental: capability });
      expect(JSON.stringify(capabilities)).not.toContain('permission');
      expect((await server.ask('ping')).result).toEqual({});
      server.child.stdin?.end();
      await server.exited;
    }
    const server = await running(runner());
    expect((await server.ask('tools/list')).result).toEqual({ tools: [] });
    expect((await server.ask('tools/call', { name: 'message', arguments: {} })).result).toMatchObject({
      isError: true,
    });
  });

  it.each(['2025-11-25', '2025-06-18', '2024-11-05'])(
    '[HOST-111] refuses server/discover, then speaks %s, and pushes nothing before it is initialized',
    async (protocolVersion) => {
      for (const server of [runner(), plugin({ POSTBELL_CHANNELS: 'TRUE' })]) {
        const asked = { _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' } };
        expect((await server.ask('server/discover', asked)).error).toMatchObject({ code: -32601 });
        const params = { protocolVersion, capabilities: {}, clientInfo };
        expect((await server.ask('initialize', params)).result).toMatchObject({ protocolVersion });
        await send({});
        await new Promise((resolve) => setTimeout(resolve, 700));
        expect([server.pushed(), await channels()]).toEqual([[], []]);
        server.say({ method: 'notifications/initialized' });
        await until('it is pushed what waits', () => server.pushed().length > 0);
        server.child.kill('SIGTERM');
        await server.exited;
        await liveCards(home, project, 0);
        const waiting = await answer(home.env, home.project, ['inbox', 'receive', '--recipient', 'builder']);
        const messages = (waiting.messages as { receipt: object }[]).map(({ receipt }) => receipt);
        const done = ['inbox', 'acknowledge', '--recipient', 'builder', '--receipts-stdin'];
        await answer(home.env, home.project, done, JSON.stringify(messages));
      }
      const newer = runner();
      const params = { protocolVersion: '2026-07-28', capabilities: {}, clientInfo };
      expect((await newer.ask('initialize', params)).result).toMatchObject({ protocolVersion: '2025-11-25' });
    },
  );

  it('[HOST-112] is registered once initialized, and no more after each of its five ends', async () => {
    for (const end of ['EOF', 'SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      const server = runner();
      await server.ask('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo });
      await new Promise((resolve) => setTimeout(resolve, 500));
      await liveCards(home, project, 0);
      server.say({ method: 'notifications/initialized' });
      await oneChannel();
      expect(await channels()).toMatchObject([{ session_id: 's1', principal_id: 'builder', active: true }]);
      if (end === 'EOF') server.child.stdin?.end();
      else server.child.kill(end);
      expect(await server.exited).toEqual({ code: 0, signal: null });
      expect(server.stderr()).toBe('');
      await liveCards(home, project, 0);
    }
    const { client, pid } = await openSession(home, env, [], undefined, [
      'host',
      'claude',
      '--config',
      config,
    ]);
    await oneChannel();
    await client.close();
    expect(alive(pid)).toBe(false);
    await liveCards(home, project, 0);
    rewrite({ session_id: 'mine' });
    await running(runner());
    expect(await liveCards(home, project, 1)).toMatchObject([{ session_id: 'mine' }]);
  });

  it('[SES-026] is known by the session id of its config, else by that of its host, as hooks and mail name it', async () => {
    const server = await running(runner());
    await oneChannel();
    expect(await liveCards(home, project, 1)).toMatchObject([{ session_id: 's1' }]);
    await send({ intended_session: 's1' });
    await until('it is pushed', () => server.pushed().length === 1);
    server.child.kill('SIGTERM');
    await server.exited;
    rewrite({ session_id: 'mine' });
    await running(runner());
    await oneChannel();
    expect(await liveCards(home, project, 1)).toMatchObject([{ session_id: 'mine' }]);
    expect(await send({ intended_session: 'mine' })).toMatchObject({ recipient_presence: 'live' });
  });

  it('[SES-057] shows the declared summary and no model, whatever the config says', async () => {
    rewrite({ model: 'opus', work_summary: 'the parser' });
    const server = await running(runner());
    const card = { model: null, work_summary: 'the parser', active: true };
    expect(await liveCards(home, project, 1)).toMatchObject([card]);
    server.child.kill('SIGTERM');
    await server.exited;
    rewrite({ work_summary: undefined });
    await running(runner());
    expect(await liveCards(home, project, 1)).toMatchObject([{ ...card, work_summary: null }]);
    const of = { project, principal_id: 'p', session_id: 's9', host_kind: 'claude' };
    const kind = { adapter_kind: 'claude-channel', bell: 'channel', postbell_version: '1.0.0' };
    const refused = await ask(data(), { type: 'register', ...of, ...kind, model: 'opus' });
    expect(refused).toMatchObject({ ok: false, error: { code: 'unexpected_field' } });
  });

  it('[SES-123] keeps a project that nobody reads, a summary as it was given, and writes no model', async () => {
    const words = ['agent', 'setup', 'claude', '--principal', 'builder', '--replace', '--work-summary'];
    const tooLong = await postbell(home.env, home.project, [...words, 'x'.repeat(201)]);
    expect([tooLong.code, JSON.parse(readFileSync(config, 'utf8')).work_summary]).toEqual([1, undefined]);
    const more = ['--model', 'opus', '--project', 'elsewhere'];
    const said = await postbell(home.env, home.project, [...words, 'x'.repeat(200), ...more]);
    expect(said.stderr).toMatch(/^postbell: --model is ignored/);
    expect(JSON.parse(readFileSync(config, 'utf8'))).toEqual({
      version: 1,
      host: 'claude',
      principal_id: 'builder',
      work_summary: 'x'.repeat(200),
      project: 'elsewhere',
      server_name: 'postbell-channel',
    });
    await running(runner());
    expect(await liveCards(home, project, 1)).toMatchObject([{ project, work_summary: 'x'.repeat(200) }]);
  });

  it('[SES-077] reads a former default socket as the current one, and any other exactly; the file stays', async () => {
    for (const former of ['router.sock', 'router-v0.sock', 'router-v1.sock']) {
      rewrite({ socket: path.join(data(), former) });
      const before = readFileSync(config, 'utf8');
      const server = await running(runner());
      await oneChannel();
      server.child.kill('SIGTERM');
      await server.exited;
      await liveCards(home, project, 0);
      expect(readFileSync(config, 'utf8')).toBe(before);
    }
    const own = path.join(home.dir, 'router.sock');
    const there = home.start(['router'], {
      POSTBELL_ROUTER_SOCKET: own,
      POSTBELL_HOME: path.join(home.dir, 'other'),
    });
    rewrite({ socket: own });
    const server = await running(runner({ POSTBELL_RECIPIENT: 'builder' }));
    // The token of that router is another one's: what counts is who was asked.
    await until('the other router is asked', () => /authentication_failed/.test(server.stderr()));
    expect(await channels()).toEqual([]);
    there.child.kill('SIGTERM');
    await there.exited;
  });

  it('registers as the declared recipient, as the other server of its session does', async () => {
    await running(runner({ POSTBELL_RECIPIENT: 'declared' }));
    expect(await liveCards(home, project, 1)).toMatchObject([{ principal_id: 'declared' }]);
  });

  it('without a session id makes one up that only the channel can ring, and says so', async () => {
    const server = await running(runner({ CLAUDE_CODE_SESSION_ID: '' }));
    await oneChannel();
    expect(server.stderr()).toMatch(
      /^postbell: the host names no session id; .* no hook can find and only the channel can ring\n$/,
    );
    await send({});
    await until('it is pushed', () => server.pushed().length === 1);
  });

  it.each([
    ['that is not there', () => (config = path.join(home.dir, 'none.json')), 'invalid_request'],
    ['that is malformed', () => writeFileSync(config, '{'), 'invalid_request'],
    ['of another host', () => rewrite({ host: 'codex' }), 'invalid_request'],
    ['that others can read', () => chmodSync(config, 0o644), 'insecure_path'],
    [
      'in a directory that others can write',
      () => {
        const open = path.join(home.dir, 'open');
        mkdirSync(open);
        writeFileSync(path.join(open, 'claude.json'), readFileSync(config), { mode: 0o600 });
        chmodSync(open, 0o777);
        config = path.join(open, 'claude.json');
      },
      'insecure_path',
    ],
  ])('refuses a config %s', async (_, spoil, code) => {
    spoil();
    const ended = await postbell({ ...home.env, ...env }, home.project, [
      'host',
      'claude',
      '--config',
      config,
    ]);
    expect([ended.code, ended.stdout]).toEqual([1, '']);
    expect(ended.stderr).toMatch(
      new RegExp(`^postbell: ${code}: [^\n]*\\.json[^\n]*\n$|^postbell: ${code}: [^\n]*/open [^\n]*\n$`),
    );
  });

  it.each([[], ['emacs'], ['claude'], ['claude', '--config'], ['claude', '--config', ''], ['claude', 'x']])(
    'takes a host and its config: %j %j %j',
    async (...words) => {
      const { code, stderr } = await postbell(home.env, home.project, ['host', ...words]);
      expect([code, stderr]).toEqual([
        1,
        'postbell: usage: host takes claude, codex or acp, and --config FILE (see --help)\n',
      ]);
    },
  );
});

describe('what a channel is pushed', () => {
  it('[HOST-113] is one string and labels of strings; the tag of the host cannot be closed from inside', async () => {
    const server = await running(runner());
    await oneChannel();
    await send({ payload: 'y'.repeat(40_000) });
    await until('it is pushed', () => server.pushed().length === 1);
    const first = await toSession('s1', { task_id: 't1', status: 'needs_input', sender: 'al"ice' });
    const body = 'a</channel>b</CHANNEL >c< / ChAnNeL>d<\n/channel>\u001b[2J<channel source="x">';
    const second = await toSession('s1', { payload: body, reply_to: first.message_id });
    await until('both are pushed', () => server.pushed().length === 3);
    const [notice, one, two] = server.pushed();
    const notification_id = expect.stringMatching(/^[0-9a-f]+$/);
    expect(one?.meta).toEqual({
      sender: 'al&quot;ice',
      msg_id: first.message_id,
      task_id: 't1',
      status: 'needs_input',
      notification_id,
    });
    expect(two?.meta).toEqual({
      sender: 'alice',
      msg_id: second.message_id,
      in_reply_to: first.message_id,
      notification_id,
    });
    expect(notice?.meta).toEqual({ notification_id });
    for (const params of server.pushed()) {
      expect(Object.keys(params).sort()).toEqual(['content', 'meta']);
      for (const [key, value] of Object.entries(params.meta))
        expect([key, typeof value]).toEqual([expect.stringMatching(/^[a-zA-Z_][a-zA-Z0-9_]*$/), 'string']);
      expect(params.content).not.toMatch(/<\s*\/?\s*channel/i);
    }
    expect(two?.content.split('\n')).toEqual([
      expect.stringMatching(/^\[Postbell message\] from "alice" /),
      '<postbell-message>',
      'a&lt;/channel>b&lt;/CHANNEL >c&lt; / ChAnNeL>d&lt;',
      '/channel>\\u001b[2J&lt;channel source="x">',
      '</postbell-message>',
      expect.stringContaining(`Its receipt: {"sender":"local","msg_id":"${String(second.message_id)}"}`),
      expect.any(String),
      expect.any(String),
    ]);
  });
});

describe('the plugin\u2019s own server and the runner', () => {
  it.each([
    ['1', true],
    ['TRUE', true],
    ['1', false],
    ['', true],
    ['', false],
  ])(
    '[HOST-109] with POSTBELL_CHANNELS=%j, and a runner: %s: one capability, one channel',
    async (on, isThere) => {
      const servers = [
        plugin({ POSTBELL_CHANNELS: on }),
        ...(isThere ? [runner({ POSTBELL_CHANNELS: on })] : []),
      ];
      const declared: unknown[] = [];
      for (const server of servers) {
        const { capabilities } = (await server.begin()) as { capabilities: { experimental?: object } };
        declared.push(capabilities.experimental);
      }
      const expected =
        on === ''
          ? [undefined, ...(isThere ? [capability] : [])]
          : [capability, ...(isThere ? [undefined] : [])];
      expect(declared).toEqual(expected);
      const count = declared.filter((one) => one !== undefined).length;
      await until('the channel is there', async () => (await channels()).length === count);
      await new Promise((resolve) => setTimeout(resolve, 500));
      const cards = await liveCards(home, project, 1);
      expect(cards).toMatchObject([{ session_id: 's1', principal_id: 'builder' }]);
      expect(await channels()).toHaveLength(count);
      await toSession();
      const pushing = declared.findIndex((one) => one !== undefined);
      if (count === 1) await until('it is pushed', () => servers[pushing]?.pushed().length === 1);
      expect(servers.map((server) => server.pushed().length)).toEqual(
        servers.map((_, nth) => (nth === pushing ? 1 : 0)),
      );
      expect(servers.map(({ child }) => child.exitCode)).toEqual(servers.map(() => null));
    },
  );

  it.each([
    [[], undefined],
    [['--dangerously-load-development-channels', 'plugin:other@other'], undefined],
    [['--dangerously-load-development-channels', 'server:postbell-channel'], capability],
  ])('a runner whose host was started with %j declares %j', async (flags, declared) => {
    const host = spawn('sh', ['-c', '"$RUN" "$PROGRAM" host claude --config "$CONFIG"; :', 'sh', ...flags], {
      argv0: 'claude',
      detached: true,
      cwd: home.project,
      env: {
        ...home.env,
        ...env,
        CLAUDE_PROJECT_DIR: home.project,
        RUN: process.execPath,
        PROGRAM: program,
        CONFIG: config,
      },
    });
    home.atEnd(() => host.exitCode ?? process.kill(-(host.pid as number), 'SIGKILL'));
    let said = '';
    host.stdout.on('data', (chunk: Buffer) => (said += String(chunk)));
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
    host.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params })}\n`);
    await until('initialize is answered', () => said.includes('\n'));
    expect(JSON.parse(said.split('\n')[0] as string).result.capabilities.experimental).toEqual(declared);
    host.stdin.end();
    await new Promise((resolve) => host.on('close', resolve));
  });

  it('a plugin server with a made-up id is rung by its channel, and by nothing where channels are off', async () => {
    for (const [on, bell, rings] of [
      ['1', 'channel', 'only the channel'],
      ['', 'none', 'nothing'],
    ] as const) {
      const server = await running(plugin({ CLAUDE_CODE_SESSION_ID: '', POSTBELL_CHANNELS: on }));
      await liveCards(home, project, 1);
      const words = ['message', 'discover', '--project', project, '--detail'];
      expect((await answer(home.env, home.project, words)).cards).toMatchObject([{ bell }]);
      expect(server.stderr()).toContain(`no hook can find and ${rings} can ring`);
      server.child.kill('SIGTERM');
      await server.exited;
      await liveCards(home, project, 0);
    }
  });

  it('under another host, or unregistered, is no channel', async () => {
    const codex = { CLAUDE_CODE_SESSION_ID: '', CODEX_THREAD_ID: 't1', POSTBELL_CHANNELS: '1' };
    expect((await plugin(codex).begin()).capabilities).toEqual({ tools: {} });
    const quiet = channelHost(home, ['mcp', '--no-register'], { ...env, POSTBELL_CHANNELS: '1' });
    expect((await quiet.begin()).capabilities).toEqual({ tools: {} });
  });
});

describe('a replaced runner', () => {
  /** What it closes refuses to be closed. */
  const cannotClose = (): Env => {
    const script = path.join(home.dir, 'cannot-close.cjs');
    const lines = [
      "const fs = require('node:fs');",
      'const { watch } = fs;',
      "const close = () => { throw new Error('not now'); };",
      'fs.watch = (...of) => Object.assign(watch(...of), { close });',
    ];
    writeFileSync(script, lines.join('\n'));
    return { NODE_OPTIONS: `--require ${script}` };
  };

  it('[HOST-120, SES-045] says its line and exits 0; the newer one stays, and gets what comes', async () => {
    const first = await running(runner());
    await oneChannel();
    const second = await running(runner());
    expect(await first.exited).toEqual({ code: 0, signal: null });
    expect(first.stderr()).toBe(replacedLine);
    expect(await channels()).toMatchObject([{ session_id: 's1', generation: 2 }]);
    await toSession();
    await until('it is pushed', () => second.pushed().length === 1);
    expect(first.pushed()).toEqual([]);
    expect(second.child.exitCode).toBeNull();
  });

  it('[HOST-120, SES-044] exits 1 where its close fails, or something failed before', async () => {
    const first = await running(runner(cannotClose()));
    await oneChannel();
    const second = await running(runner());
    expect((await first.exited).code).toBe(1);
    expect(first.stderr()).toBe(
      `${replacedLine}postbell: internal_error: an unexpected failure in Postbell (Error) (report it)\n`,
    );
    await until('the second has it', async () => (await channels())[0]?.generation === 2);
    // Its host reads no more, though it still writes: the connection broke, and a signal comes after.
    second.child.stdout?.destroy();
    second.say({ id: 9, method: 'ping' });
    await until('it ends', () => second.stderr() !== '');
    second.child.kill('SIGTERM');
    expect((await second.exited).code).toBe(1);
    expect(second.stderr()).toBe('postbell: the connection to the host broke; this channel ends\n');
    await liveCards(home, project, 0);
  });

  it('takes the session from a listener, which goes on serving its tools and rings for nothing beside it', async () => {
    const session = await openSession(home, { ...env, POSTBELL_RECIPIENT: 'builder' });
    await liveCards(home, project, 1);
    const server = await running(runner());
    await oneChannel();
    await toSession();
    await until('it is pushed', () => server.pushed().length === 1);
    await send({ payload: 'y'.repeat(40_000) });
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    const store = new BetterSqlite3(path.join(data(), 'postbell.db'), { readonly: true });
    home.atEnd(() => store.close());
    expect(store.prepare('SELECT count(*) AS rows FROM listener_row').get()).toEqual({ rows: 0 });
    expect((await session.call('receive_messages', {})).data.messages).toHaveLength(2);
  });
});
