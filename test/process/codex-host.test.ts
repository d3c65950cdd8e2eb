// `postbell host codex`, with a program in the place of Codex.

import { existsSync, lstatSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Entry, type FakeCodex, fakeCodex } from './codex.ts';
import { codexRunners } from './codex-runner.ts';
import { fakeRouter } from './fake-router.ts';
import { type Home, makeHome, type Started, until } from './home.ts';
import { alive, postbell, program, stopRouter } from './postbell.ts';
import { processesWith } from './processes.ts';
import { openTerminal } from './terminal.ts';

let home: Home;
let fake: FakeCodex;
let codex: ReturnType<typeof codexRunners>;
beforeEach(() => {
  home = makeHome();
  fake = fakeCodex(home.dir);
  home.env.PATH = `${fake.bin}:${process.env.PATH}`;
  codex = codexRunners(home);
});
afterEach(async () => {
  await home.end();
  for (const { pid, child } of fake.entries())
    await until('all of Codex has ended', () => !alive((pid ?? child) as number));
});

const asked = (method: string): Entry[] => fake.entries().filter((entry) => entry.method === method);
const socketOf = ({ argv = [] }: Entry): string => String(argv[2]).slice('unix://'.length);
const server = (nth = 0): Entry => fake.starts().at(nth) as Entry;

describe('postbell host codex', () => {
  it('[HOST-188] starts its own app-server on a private socket, makes its thread, and registers only then', async () => {
    fake.play({ delays: { 'thread/start': 1_500 } });
    const runner = home.start(['host', 'codex', '--config', codex.config]);
    await until('a thread is asked for', () => asked('thread/start').length === 1);
    await new Promise((resolve) => setTimeout(resolve, 700));
    expect(await codex.cards()).toEqual([]);
    await until('it is registered', async () => (await codex.cards()).length === 1);
    const [card] = await codex.cards();
    expect(runner.stderr()).toContain(
      `postbell: thread ${String(card?.session_id)} of Codex gets the mail of "builder"\n`,
    );
    expect(card).toMatchObject({ principal_id: 'builder', host_kind: 'codex', bell: 'codex-queue' });
    expect(server().argv).toEqual(['app-server', '--listen', expect.stringMatching(/^unix:\/\//)]);
    const socket = socketOf(server());
    expect(path.dirname(socket)).toBe(path.join(home.dir, 'data', 'runtime'));
    expect(Buffer.byteLength(socket)).toBeLessThanOrEqual(103);
    expect(server().cwd).toBe(home.project);
    expect(fake.methods()).toEqual(['initialize', 'initialized', 'thread/start', 'account/read']);
    const ours = { command: process.execPath, args: [program, 'mcp'] };
    expect(asked('thread/start')[0]?.params).toMatchObject({
      cwd: home.project,
      config: { 'mcp_servers.postbell': ours },
    });

    const sent = await codex.sendExact(String(card?.session_id), 'a body of which no argument tells');
    const receipt = { thread_id: card?.session_id, turn_id: 'turn-1', state: 'host_queued' };
    expect(sent.native_delivery).toMatchObject({ status: 'native_accepted', receipt });
    const text = JSON.stringify(asked('turn/start')[0]?.params?.input);
    expect(text).toContain('[Postbell inbox notice]');
    expect(text).not.toContain('a body of which');
    expect(processesWith('Postbell inbox notice')).toEqual([]);
    expect(processesWith('a body of which')).toEqual([]);
  });

  it('refuses a socket of more than 103 bytes, or one that is occupied, before anything is started', async () => {
    const at = (bytes: number) => `${home.dir}/${'s'.repeat(bytes - home.dir.length - 1)}`;
    writeFileSync(path.join(home.dir, 'taken'), 'mine');
    for (const [control_socket, code] of [
      [at(104), 'socket_path_too_long'],
      [path.join(home.dir, 'taken'), 'socket_path_occupied'],
    ] as const) {
      codex.configure({ control_socket });
      const { code: status, stderr } = await postbell(home.env, home.project, [
        'host',
        'codex',
        '--config',
        codex.config,
      ]);
      expect([status, stderr]).toEqual([1, expect.stringContaining(code)]);
    }
    expect(fake.starts()).toEqual([]);
    expect(readFileSync(path.join(home.dir, 'taken'), 'utf8')).toBe('mine');
    codex.configure({ control_socket: at(103) });
    await codex.running();
    expect(socketOf(server())).toBe(at(103));
  });

  it('refuses a config that is not one of its host, or of a workspace that is not there', async () => {
    for (const over of [
      { host: 'acp' },
      { workspace: undefined },
      { workspace: path.join(home.dir, 'none') },
    ]) {
      codex.configure(over);
      const ended = await postbell(home.env, home.project, ['host', 'codex', '--config', codex.config]);
      expect([over, ended.code]).toEqual([over, 1]);
    }
    for (const words of [['codex'], ['codex', '--config'], ['codex', '--config', `${codex.config}.none`]])
      expect((await postbell(home.env, home.project, ['host', ...words])).code).toBe(1);
    expect(fake.starts()).toEqual([]);
  });

  it('[HOST-190] exits 1 where Codex ends, registered or still connecting to the router: then nothing is', async () => {
    const ended = 'postbell: Codex was ended by SIGKILL; this session ends\n';
    const registered = await codex.running();
    process.kill(server().pid as number, 'SIGKILL');
    expect(await registered.exited).toEqual({ code: 1, signal: null });
    expect(registered.stderr()).toContain(ended);
    expect([await codex.cards(), codex.sockets(), await registrations()]).toEqual([[], [], 1]);
    await stopRouter(home.env, home.project);
    await fakeRouter(home, () => undefined);
    const connecting = codex.run();
    await until('its thread is there', () => asked('thread/start').length === 2);
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(connecting.stderr()).not.toContain('gets the mail of');
    process.kill(server(1).pid as number, 'SIGKILL');
    expect(await connecting.exited).toEqual({ code: 1, signal: null });
    expect(connecting.stderr()).toContain(ended);
    expect([codex.sockets(), await registrations()]).toEqual([[], 1]);
  });

  it('exits 1 and registers nothing where Codex cannot be started, or makes no thread', async () => {
    const noThread = { errors: { 'thread/start': { code: -32600, message: 'no' } } };
    const noId = { thread: 'a thread' };
    fake.play({ exits: 3, says: 'a word\nError: no \u001b[31mhome\n\nStack backtrace:\n  0: <unknown>' });
    const spoken = codex.run();
    expect(await spoken.exited).toEqual({ code: 1, signal: null });
    const why = '"Error: no \\u001b[31mhome"';
    expect(spoken.stderr()).toBe(
      `postbell: Codex ended with exit code 3, and said ${why}; this session ends\n`,
    );
    for (const scene of [{ exits: 3 }, noThread, noId, { drops: ['initialize'], exits: 0 }]) {
      fake.play(scene);
      const runner: Started = codex.run();
      expect([scene, await runner.exited]).toEqual([scene, { code: 1, signal: null }]);
    }
    home.env.PATH = path.dirname(process.execPath);
    const runner = home.start(['host', 'codex', '--config', codex.config], { PATH: '/nowhere' });
    expect((await runner.exited).code).toBe(1);
    expect(runner.stderr()).toContain('postbell: Codex cannot be started (ENOENT: "codex")');
    expect(await registrations()).toBe(0);
  });

  it('[HOST-191] is handed nothing once it has stopped: the send fails closed and the message stays', async () => {
    const runner = await codex.running();
    const { project } = await codex.sendExact(runner.thread, 'while it runs');
    runner.child.kill('SIGTERM');
    await runner.exited;
    const words = ['message', 'send', '--project', project, '--sender', 'me', '--recipient', runner.thread];
    const more = ['--target-kind', 'session', '--idempotency-key', 'late', '--payload-stdin', '--json'];
    const refused = await postbell(home.env, home.project, [...words, ...more], 'kept');
    expect(refused.code).toBe(1);
    const { error } = JSON.parse(refused.stderr) as { error: { details: { message_id: string } } };
    expect(error).toMatchObject({ code: 'recipient_unavailable', details: { reason: 'not_live' } });
    expect(asked('turn/start')).toHaveLength(1);
    const { message_id } = error.details;
    const fetched = [
      'message',
      'fetch',
      '--project',
      project,
      '--recipient',
      runner.thread,
      '--message-id',
      message_id,
    ];
    const kept = await postbell(home.env, home.project, [...fetched, '--target-kind', 'session']);
    expect(kept.stdout).toContain('kept');
  });

  const requests = [
    { method: 'item/commandExecution/requestApproval', params: { command: 'rm -rf build' } },
    { method: 'item/fileChange/requestApproval', params: {} },
    { method: 'item/permissions/requestApproval', params: { permissions: { network: { enabled: true } } } },
    { method: 'mcpServer/elicitation/request', params: { serverName: 's', mode: 'form', message: 'sure?' } },
    { method: 'execCommandApproval', params: { command: ['rm', 'x'] } },
    { method: 'applyPatchApproval', params: {} },
    { method: 'item/tool/requestUserInput', params: { questions: [] } },
  ];
  const answers = () =>
    fake
      .entries()
      .filter(({ id = 0, method }) => method === undefined && id >= 1_000)
      .map(({ result, error }) => result ?? error);
  const denied = { decision: { denied: { rejection: 'nobody allowed it' } } };
  const nothing = { action: 'decline', content: null, _meta: null };

  it('[HOST-192] declines what Codex asks where no person is at its terminal, or says anything but yes', async () => {
    fake.play({ asks: [...requests, { method: 'account/chatgptAuthTokens/refresh', params: {} }] });
    const runner = await codex.running();
    await codex.sendExact(runner.thread, 'x');
    await until('all is answered', () => answers().length === requests.length + 1);
    const declined = answers();
    expect(declined).toEqual([
      { decision: 'decline' },
      { decision: 'decline' },
      { permissions: {}, scope: 'turn' },
      nothing,
      denied,
      denied,
      { answers: {} },
      { code: -32601, message: 'this client does not answer that' },
    ]);
    runner.child.kill('SIGTERM');
    await runner.exited;

    fake.play({ asks: requests.slice(0, 3) });
    const terminal = openTerminal(home, 200);
    home.atEnd(() => terminal.end());
    terminal.type(`${process.execPath} ${program} host codex --config ${codex.config}`);
    const thread = () => /thread (\S+) of Codex/.exec(terminal.screen())?.[1];
    await until('it runs', () => thread() !== undefined, 20_000);
    await until('it is registered', async () => (await codex.cards()).length === 1);
    await codex.sendExact(thread() as string, 'x');
    await until('it asks', () => terminal.screen().includes('rm -rf build'));
    expect(answers()).toHaveLength(declined.length);
    for (const [n, line] of ['y', 'maybe', 'yes'].entries()) {
      terminal.type(line);
      await until('it is answered', () => answers().length === declined.length + n + 1);
    }
    expect(answers().slice(declined.length)).toEqual([
      { decision: 'accept' },
      { decision: 'decline' },
      { permissions: { network: { enabled: true } }, scope: 'turn' },
    ]);
    terminal.press('C-c');
    await until('it has ended', async () => (await codex.cards()).length === 0);
  });

  it('[HOST-192] a question that Codex takes back is answered by nobody, and the next line is no answer', async () => {
    const takenBack = { method: 'serverRequest/resolved', params: { requestId: 1_000 } };
    fake.play({ asks: requests.slice(0, 2), tells: [takenBack] });
    const terminal = openTerminal(home, 200);
    home.atEnd(() => terminal.end());
    terminal.type(`${process.execPath} ${program} host codex --config ${codex.config}`);
    const thread = () => /thread (\S+) of Codex gets/.exec(terminal.screen())?.[1];
    await until('it runs', () => thread() !== undefined, 20_000);
    await codex.sendExact(thread() as string, 'x');
    await until('it is taken back', () => terminal.screen().includes('needs no answer any more'));
    await until('the other is asked', () => /a change of files[^\n]*\[y\/N\]/.test(terminal.screen()));
    terminal.type('y');
    await until('it is answered', () => answers().length === 1);
    expect(answers()).toEqual([{ decision: 'accept' }]);
    terminal.press('C-c');
    await until('it has ended', async () => (await codex.cards()).length === 0);
  });

  it('[HOST-193] has a fresh session at each start, ends with status 0 by a signal, and Codex with what it started ends', async () => {
    const threads: string[] = [];
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      fake.play({ child: true });
      const runner = await codex.running();
      threads.push(runner.thread);
      runner.child.kill(signal);
      expect(await runner.exited).toEqual({ code: 0, signal: null });
      for (const { pid, child } of fake.entries())
        if ((pid ?? child) !== undefined) expect(alive((pid ?? child) as number)).toBe(false);
    }
    expect(new Set(threads).size).toBe(2);
    fake.play({ child: true });
    const runner = await codex.running();
    await codex.replace(runner.thread);
    expect(await runner.exited).toEqual({ code: 0, signal: null });
    expect(runner.stderr().split('\n')).toContain(
      'replaced by a newer connection for this session; stopping.',
    );
    expect(await codex.cards()).toMatchObject([{ session_id: runner.thread, generation: 2 }]);
    for (const { pid, child } of fake.entries())
      if ((pid ?? child) !== undefined) expect(alive((pid ?? child) as number)).toBe(false);
  });

  it('killed with -9 takes its app-server with it, and the next one may have the same socket', async () => {
    codex.configure({ control_socket: path.join(home.dir, 'control.sock') });
    fake.play({ child: true });
    const runner = await codex.running();
    process.kill(runner.pid, 'SIGKILL');
    for (const { pid, child } of fake.entries())
      await until('all of Codex has ended', () => !alive((pid ?? child) as number));
    await codex.running();
  });

  it('takes a link that a killed Codex left for no socket, and no other link', async () => {
    const link = path.join(home.dir, 'control.sock');
    codex.configure({ control_socket: link });
    const elsewhere = path.join(home.dir, 'elsewhere');
    const listener = createServer().listen(elsewhere);
    await until('it listens', () => existsSync(elsewhere));
    writeFileSync(path.join(home.dir, 'mine'), 'mine');
    const taken = async (target: string): Promise<void> => {
      symlinkSync(target, link);
      const refused = codex.run();
      expect(await refused.exited).toEqual({ code: 1, signal: null });
      expect(refused.stderr()).toContain('socket_path_occupied');
      expect(lstatSync(link).isSymbolicLink()).toBe(true);
      rmSync(link);
    };
    await taken(elsewhere);
    await taken(path.join(home.dir, 'mine'));
    expect(fake.starts()).toEqual([]);
    listener.close();
    symlinkSync(elsewhere, link);
    await codex.running();
    expect(socketOf(server())).toBe(link);
  });

  it('says that Codex is not logged in, where Codex says so', async () => {
    const account = (result: object) => ({ answers: { 'account/read': { result } } });
    const line = 'postbell: Codex is not logged in (codex login): its turns begin, and get no further\n';
    for (const [result, said] of [
      [{ account: null, requiresOpenaiAuth: true }, true],
      [{ account: null, requiresOpenaiAuth: false }, false],
      [{ account: { type: 'apiKey' }, requiresOpenaiAuth: true }, false],
      [{}, false],
    ] as const) {
      fake.play(account(result));
      const runner = await codex.running();
      runner.child.kill('SIGTERM');
      await runner.exited;
      expect([result, runner.stderr().includes(line)]).toEqual([result, said]);
    }
  });

  it('of two that start with one socket one goes on, and the other starts nothing', async () => {
    codex.configure({ control_socket: path.join(home.dir, 'control.sock') });
    const both = [codex.run(), codex.run()];
    const ready = () => both.filter((one) => one.stderr().includes('gets the mail of'));
    await until('one is ready', () => ready().length === 1, 30_000);
    const other = both.find((one) => one !== ready()[0]) as Started;
    expect(await other.exited).toEqual({ code: 1, signal: null });
    expect(other.stderr()).toMatch(/^postbell: socket_path_occupied: [^\n]+\n$/);
    expect([fake.starts().length, asked('thread/start').length]).toEqual([1, 1]);
  });

  it('begins one turn at a time: the next notice waits for the end of the one that runs', async () => {
    fake.play({ turnMs: 5_000 });
    const runner = await codex.running();
    const { project, message_id } = await codex.sendExact(runner.thread, 'one');
    const taken = ['message', 'intake', '--project', project, '--recipient', runner.thread];
    const more = ['--message-id', message_id, '--idempotency-key', 'k', '--state', 'fetched'];
    expect((await postbell(home.env, home.project, [...taken, ...more])).code).toBe(0);
    let answered = false;
    const second = codex.sendExact(runner.thread, 'two').finally(() => {
      answered = true;
    });
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    expect([answered, asked('turn/start').length]).toEqual([false, 1]);
    expect((await second).native_delivery).toMatchObject({ receipt: { turn_id: 'turn-2' } });
    expect(asked('turn/start')).toHaveLength(2);
  });

  it('gives Codex the environment it was started in, and nothing of a session around it', async () => {
    await codex.running({
      CODEX_HOME: '/home/b/.codex',
      OPENAI_API_KEY: 'kept',
      POSTBELL_SESSION: 'other',
      CODEX_THREAD_ID: 'other',
      CLAUDE_CODE_MESSAGING_TOKEN: 'secret',
    });
    const { env = {} } = server();
    expect(env).toMatchObject({ CODEX_HOME: '/home/b/.codex', OPENAI_API_KEY: 'kept' });
    expect(Object.values(env)).not.toContain('other');
    expect(Object.values(env)).not.toContain('secret');
  });
});

/** How often anybody was ever registered. */
async function registrations(): Promise<number> {
  const { default: BetterSqlite3 } = await import('better-sqlite3');
  const store = new BetterSqlite3(path.join(home.dir, 'data', 'postbell.db'), { readonly: true });
  try {
    return (store.prepare('SELECT count(*) AS n FROM connection').get() as { n: number }).n;
  } finally {
    store.close();
  }
}
