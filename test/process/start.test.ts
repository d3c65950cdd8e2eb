// Who may start the router, where its socket lies, who may speak to it, and how it is ended.

import { execFileSync, spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { connect, createServer, Socket } from 'node:net';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import { clearSocketPath } from '../../src/router/lifecycle.ts';
import { bundleChild, start } from '../contract/process.ts';
import { type Home, makeHome, type Started, until } from './home.ts';
import { alive, answer, postbell } from './postbell.ts';
import { liveCards, openSession } from './session.ts';

let home: Home;
let data: string;
let socket: string;
beforeEach(() => {
  home = makeHome();
  data = home.env.POSTBELL_HOME as string;
  socket = path.join(data, 'router-v1.sock');
});
afterEach(() => home.end());

const router = (more = {}) => postbell({ ...home.env, ...more }, home.project, ['router']);
const status = async () => (await postbell(home.env, home.project, ['router', 'status'])).code;
async function running(more = {}): Promise<Started> {
  const started = home.start(['router'], more);
  await until('it answers', async () => (await status()) === 0);
  return started;
}
const failed = (...codes: string[]) => ({
  code: 1,
  stdout: '',
  stderr: expect.stringMatching(new RegExp(`^postbell: (${codes.join('|')}): [^\n]*\n$`)),
});

describe('a router that cannot start', () => {
  it('[SES-065] prints one line with its code and exits 1', async () => {
    expect(await router({ POSTBELL_ROUTER_SOCKET: `/${'x'.repeat(103)}` })).toEqual(
      failed('socket_path_too_long'),
    );
    mkdirSync(data, { mode: 0o700 });
    chmodSync(data, 0o777);
    expect(await router()).toEqual(failed('insecure_path'));
    chmodSync(data, 0o700);
    await running();
    expect(await router()).toEqual(failed('router_already_running'));
  });
});

describe('the socket', () => {
  it('[SES-067] lies where POSTBELL_ROUTER_SOCKET says, else beside the database; a relative or empty value is refused', async () => {
    for (const value of ['', ' ', 'relative.sock', './r.sock', '~/r.sock'])
      expect([value, await router({ POSTBELL_ROUTER_SOCKET: value })]).toEqual([
        value,
        failed('invalid_socket_path'),
      ]);
    expect(existsSync(data)).toBe(false);
    const elsewhere = path.join(home.dir, 'elsewhere.sock');
    const chosen = home.start(['router'], { POSTBELL_ROUTER_SOCKET: elsewhere });
    await until('it listens', () => existsSync(elsewhere));
    const env = { ...home.env, POSTBELL_ROUTER_SOCKET: elsewhere };
    expect(await answer(env, home.project, ['router', 'status'])).toMatchObject({ socket: elsewhere });
    expect(existsSync(socket)).toBe(false);
    chosen.child.kill('SIGTERM');
    await chosen.exited;
    const database = path.join(home.dir, 'other', 'mail.db');
    const beside = home.start(['router'], { POSTBELL_DB: database });
    await until('it listens', () => existsSync(path.join(home.dir, 'other', 'router-v1.sock')));
    expect(existsSync(socket)).toBe(false);
    beside.child.kill('SIGTERM');
    await beside.exited;
    await running();
    expect(lstatSync(socket).isSocket()).toBe(true);
  });

  it('[SES-071] is taken only where it is an orphan of this account: never while it is live, and nothing else', async () => {
    const first = await running();
    const { ino } = statSync(socket);
    expect(await router()).toEqual(failed('router_already_running'));
    expect(statSync(socket).ino).toBe(ino);
    expect(await status()).toBe(0);
    first.child.kill('SIGKILL');
    await first.exited;
    expect(statSync(socket).ino).toBe(ino);
    const second = await running();
    expect(await answer(home.env, home.project, ['router', 'status'])).toMatchObject({ pid: second.pid });
    second.child.kill('SIGTERM');
    await second.exited;
    writeFileSync(socket, 'a file');
    expect(await router()).toEqual(failed('socket_path_occupied'));
    expect(readFileSync(socket, 'utf8')).toBe('a file');
    unlinkSync(socket);
    symlinkSync('/dev/null', socket);
    expect(await router()).toEqual(failed('socket_path_occupied'));
    expect(readlinkSync(socket)).toBe('/dev/null');
    unlinkSync(socket);
    // Somebody else listens, without a lock: alive is alive.
    const foreign = createServer((client) => client.on('error', () => {}).end('mine'));
    await new Promise<void>((listening) => foreign.listen(socket, listening));
    const theirs = statSync(socket).ino;
    expect(await router()).toEqual(failed('router_already_running'));
    expect(statSync(socket).ino).toBe(theirs);
    await new Promise((closed) => foreign.close(closed));
  });

  /** A socket that nobody listens at any more. */
  async function orphan(at: string): Promise<void> {
    mkdirSync(data, { recursive: true, mode: 0o700 });
    const script = `require('node:net').createServer().listen(process.argv[1], () => process.kill(process.pid, 'SIGKILL'))`;
    await new Promise((ended) => spawn(process.execPath, ['-e', script, at]).on('close', ended));
    expect(lstatSync(at).isSocket()).toBe(true);
  }

  it('[SES-071] is no orphan where the second connection is taken, or where it is another account\u2019s', async (context) => {
    await orphan(socket);
    const { ino } = statSync(socket);
    const live = path.join(home.dir, 'live.sock');
    const server = createServer((client) => client.on('error', () => {}).end());
    home.atEnd(() => server.close());
    await new Promise<void>((listening) => server.listen(live, listening));
    let asked = 0;
    const { prototype } = Socket;
    const { connect: really } = prototype;
    home.atEnd(() => {
      prototype.connect = really;
    });
    // Whoever bound the path before begins to listen between the two.
    prototype.connect = function (this: Socket) {
      asked += 1;
      return really.call(this, asked === 1 ? socket : live);
    } as Socket['connect'];
    await expect(clearSocketPath(socket, { clock: systemClock })).rejects.toMatchObject({
      code: 'router_already_running',
    });
    prototype.connect = really;
    expect([asked, statSync(socket).ino]).toEqual([2, ino]);
    if (process.getuid?.() !== 0) context.skip();
    chownSync(socket, 65_534, 65_534);
    await expect(clearSocketPath(socket, { clock: systemClock })).rejects.toMatchObject({
      code: 'socket_path_occupied',
    });
    expect(statSync(socket).ino).toBe(ino);
  });

  it('[SES-071] is no orphan where another has taken its place between the two refusals', async () => {
    await orphan(socket);
    await orphan(`${socket}.next`);
    const { ino } = statSync(`${socket}.next`);
    const clock = {
      ...systemClock,
      after: (ms: number, then: () => void) => {
        if (ms === 50) renameSync(`${socket}.next`, socket);
        return systemClock.after(ms, then);
      },
    };
    await expect(clearSocketPath(socket, { clock })).rejects.toMatchObject({ code: 'socket_path_occupied' });
    expect(statSync(socket).ino).toBe(ino);
    await clearSocketPath(socket, { clock: systemClock });
    expect(existsSync(socket)).toBe(false);
  });

  it('[SES-076] has the wire version in its name: one of another version stays up, untouched', async () => {
    mkdirSync(data, { mode: 0o700 });
    const others = ['router-v0.sock', 'router-v2.sock'].map((name) => path.join(data, name));
    const heard: string[] = [];
    const servers = others.map((at) => {
      const server = createServer((client) => {
        client.on('error', () => {});
        client.on('data', (chunk) => heard.push(String(chunk)));
        client.write('still here');
      });
      server.listen(at);
      home.atEnd(() => server.close());
      return server;
    });
    await until('they listen', () => others.every((at) => existsSync(at)));
    const before = others.map((at) => statSync(at).ino);
    const started = await running();
    await openSession(home, { CLAUDE_CODE_SESSION_ID: 's1' });
    await answer(home.env, home.project, ['router', 'stop']);
    await started.exited;
    expect(others.map((at) => statSync(at).ino)).toEqual(before);
    expect(servers.every(({ listening }) => listening)).toBe(true);
    expect(heard).toEqual([]);
    for (const at of others)
      expect(
        await new Promise((said) => {
          const client = connect(at).on('data', (chunk) => {
            client.destroy();
            said(String(chunk));
          });
        }),
      ).toBe('still here');
  });
});

describe('the start-up lock', () => {
  it('[SES-070] lets one of two starts run, and is free at once when its holder is killed, in mid-start or later', async () => {
    const both = [home.start(['router']), home.start(['router'])];
    await until('one runs', async () => (await status()) === 0);
    const loser = await Promise.race(both.map(async (one) => ({ one, ended: await one.exited })));
    expect(loser.ended.code).toBe(1);
    expect(loser.one.stderr()).toMatch(
      /^postbell: (router_start_in_progress|router_already_running): [^\n]*\n$/,
    );
    const winner = both.find((one) => one !== loser.one) as Started;
    expect(alive(winner.pid)).toBe(true);
    winner.child.kill('SIGKILL');
    await winner.exited;
    // A start that has its lock and no socket yet, however long it takes.
    const starting = start(await bundleChild(), 'lock', data, 'router-v1');
    expect(await starting.line()).toBe('held');
    expect(await router()).toEqual(failed('router_start_in_progress'));
    starting.process.kill('SIGKILL');
    await starting.ended;
    const next = await running();
    expect(next.child.exitCode).toBeNull();
    expect(await router()).toEqual(failed('router_already_running'));
    // Never judged by age.
    execFileSync('touch', ['-d', '2001-01-01', path.join(data, 'router-v1.lock')]);
    expect(await router()).toEqual(failed('router_already_running'));
  });
});

/** Speaks lines to the socket; answers come in their order. */
function raw(): Promise<{ ask(frame: object): Promise<Record<string, unknown>>; end(): void }> {
  return new Promise((resolve, reject) => {
    const client = connect(socket);
    const waiting: ((answer: Record<string, unknown>) => void)[] = [];
    let text = '';
    client.on('error', reject);
    client.on('data', (chunk) => {
      text += String(chunk);
      const lines = text.split('\n');
      text = lines.pop() as string;
      for (const line of lines) waiting.shift()?.(JSON.parse(line) as Record<string, unknown>);
    });
    client.on('connect', () =>
      resolve({
        ask: (frame) =>
          new Promise((answered) => {
            waiting.push(answered);
            client.write(`${JSON.stringify({ v: 1, hops: 0, request_id: 'r1', ...frame })}\n`);
          }),
        end: () => client.destroy(),
      }),
    );
  });
}

describe('who may speak', () => {
  it('[SES-074] is this account, with the token; and of a registration only its own connection', async () => {
    await running();
    const auth_token = readFileSync(path.join(data, 'router.token'), 'utf8').trim();
    const session = { project: 'p', session_id: 's1' };
    const who = { principal_id: 'bob', adapter_kind: 'poll', bell: 'none', host_kind: 'other' };
    const withToken: Record<string, object> = {
      register: { ...session, ...who, postbell_version: '0.1.0' },
      notify: { project: 'p', delivery_id: 'd' },
      discover: { project: 'p' },
      status: {},
      stop: {},
    };
    const codeOf = async (client: Awaited<ReturnType<typeof raw>>, frame: object) => {
      const { error } = (await client.ask(frame)) as { error?: { code: string } };
      return error?.code;
    };
    for (const [type, fields] of Object.entries(withToken)) {
      const client = await raw();
      expect([type, await codeOf(client, { type, ...fields })]).toEqual([type, 'invalid_field']);
      expect([type, await codeOf(client, { type, ...fields, auth_token: 'f'.repeat(64) })]).toEqual([
        type,
        'authentication_failed',
      ]);
      client.end();
    }
    const own = await raw();
    const registered = await own.ask({ type: 'register', ...withToken.register, auth_token });
    const key = { connection_id: registered.connection_id, generation: registered.generation };
    const outcome = { attempt_id: 'a', delivery_id: 'd', ...key };
    const ofConnection: Record<string, object> = {
      heartbeat: { ...session, ...key },
      host_accept: { ...outcome, content: 'notice', receipt: {} },
      host_reject: { ...outcome, failure_code: 'adapter_error' },
      disconnect: { ...session, ...key },
    };
    const other = await raw();
    for (const [type, fields] of Object.entries(ofConnection)) {
      expect([type, await codeOf(other, { type, ...fields })]).toEqual([type, 'stale_generation']);
      expect([type, await codeOf(other, { type, ...fields, auth_token })]).toEqual([
        type,
        'unexpected_field',
      ]);
    }
    expect(await liveCards(home, 'p', 1)).toMatchObject([{ session_id: 's1' }]);
    for (const [type, fields] of Object.entries(ofConnection))
      expect(await codeOf(own, { type, ...fields })).toBe(
        type.startsWith('host_') ? 'outcome_scope_mismatch' : undefined,
      );
    own.end();
    other.end();
    expect(statSync(socket).mode & 0o777).toBe(0o600);
    if (process.getuid?.() !== 0) return;
    // Another account, even where it may look into the directories.
    for (const directory of [home.dir, data]) chmodSync(directory, 0o755);
    const script = `require('node:net').connect(process.argv[1]).on('connect', () => process.exit(0)).on('error', (e) => { console.log(e.code); process.exit(1); })`;
    const stranger = spawn(process.execPath, ['-e', script, socket], { uid: 65_534, gid: 65_534 });
    let said = '';
    stranger.stdout.on('data', (chunk) => (said += String(chunk)));
    expect(await new Promise((ended) => stranger.on('close', ended))).toBe(1);
    expect(said).toBe('EACCES\n');
    chmodSync(data, 0o700);
  });

  it('[SES-075] may ask for its state, and end exactly the process that the socket names', async () => {
    const bystander = home.start(['router'], { POSTBELL_HOME: path.join(home.dir, 'another') });
    const began = Date.now();
    const started = await running();
    const ready = Date.now();
    await openSession(home, { CLAUDE_CODE_SESSION_ID: 's1' });
    const sent = await answer(home.env, home.project, ['send', 'nobody', '--json'], 'x');
    await liveCards(home, sent.project as string, 1);
    const beforeMs = Date.now() - ready;
    const told = await answer(home.env, home.project, ['router', 'status']);
    expect(told).toEqual({
      socket,
      pid: started.pid,
      postbell_version: '0.1.0',
      uptime_ms: expect.any(Number),
      live_connections: 1,
    });
    expect(told.uptime_ms).toBeGreaterThanOrEqual(beforeMs);
    expect(told.uptime_ms).toBeLessThanOrEqual(Date.now() - began);
    expect(await answer(home.env, home.project, ['router', 'stop'])).toMatchObject({
      stopping: true,
      pid: started.pid,
    });
    expect(await started.exited).toEqual({ code: 0, signal: null });
    expect(alive(bystander.pid)).toBe(true);
    bystander.child.kill('SIGTERM');
    await bystander.exited;
  });
});

/** Processes that this one started, and theirs. */
function descendants(pid: number): string[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  return children === ''
    ? []
    : children.split(' ').flatMap((child) => [child, ...descendants(Number(child))]);
}

describe('an exact session that cannot be reached', () => {
  it('[SES-103] is not started, resumed or replaced, whatever the failure; another workspace is a refusal', async () => {
    const claude = path.join(home.dir, 'bin');
    const traces = path.join(home.dir, 'started');
    mkdirSync(claude);
    for (const name of ['claude', 'codex', 'gemini'])
      writeFileSync(path.join(claude, name), `#!/bin/sh\necho ${name} >> '${traces}'\n`, { mode: 0o755 });
    const PATH = `${claude}:${home.env.PATH}`;
    const env = { ...home.env, PATH };
    const started = await running({ PATH });
    const elsewhere = path.join(home.dir, 'bank');
    mkdirSync(elsewhere);
    const exact = async (id: string, at = home.project) => {
      const { code, stderr } = await postbell(env, at, ['send', id, '--session'], 'hello');
      return [code, /\(([a-z_]+)\); the message is kept/.exec(stderr)?.[1]];
    };
    const session = await openSession(home, { CLAUDE_CODE_SESSION_ID: 's1', POSTBELL_LISTENER: 'off', PATH });
    const sent = await answer(env, home.project, ['send', 'nobody', '--json'], 'x');
    await liveCards(home, sent.project as string, 1);
    expect(await exact('unheard-of')).toEqual([1, 'never_registered']);
    expect(await exact('s1', elsewhere)).toEqual([1, 'never_registered']);
    expect(await exact('s1')).toEqual([1, 'no_bell']);
    const large = await postbell(env, home.project, ['send', 's1', '--session'], 'x'.repeat(20_000));
    expect(large.stderr).toMatch(/^postbell: native_message_too_large: /);
    expect(descendants(started.pid)).toEqual([]);
    await session.close();
    await liveCards(home, sent.project as string, 0);
    expect(await exact('s1')).toEqual([1, 'not_live']);
    expect(descendants(started.pid)).toEqual([]);
    expect(existsSync(traces)).toBe(false);
    started.child.kill('SIGKILL');
    await started.exited;
    const { code, stderr } = await postbell(env, home.project, ['send', 's1', '--session'], 'hello');
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^postbell: router_unreachable: /)]);
    expect(existsSync(traces)).toBe(false);
  });
});
