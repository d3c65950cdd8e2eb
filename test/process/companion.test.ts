// The companion of a Codex thread, as the plugin's hook starts it: one process a thread, known by its record, replaced and ended
// over its private socket.

import { spawn } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import { askPrivately } from '../../src/platform/control.ts';
import type { CompanionRecord } from '../../src/protocol/companion.ts';
import { replacedLine } from '../../src/protocol/session.ts';
import { locksIn } from '../../src/store/lock.ts';
import { type FakeCodex, fakeCodex } from './codex.ts';
import { type Home, makeHome, until } from './home.ts';
import { recordsOf, runHook } from './hook.ts';
import { alive, answer, type Env, postbell } from './postbell.ts';
import { companionsOf } from './processes.ts';
import { liveCards, openOther } from './session.ts';

const thread = '01a2359b-9716-7d71-8e13-ff19cf36a487';
let home: Home;
let plugin: Env;
let codex: FakeCodex;
beforeEach(() => {
  home = makeHome();
  codex = fakeCodex(home.dir);
  plugin = { PLUGIN_ROOT: '/plugin', CLAUDE_PROJECT_DIR: '', PATH: `${codex.bin}:${home.env.PATH}` };
});
afterEach(() => home.end());

const data = (): string => home.env.POSTBELL_HOME as string;
const runtime = (): string => path.join(data(), 'runtime');
const inRuntime = (ending: string): string[] =>
  existsSync(runtime()) ? readdirSync(runtime()).filter((name) => name.endsWith(ending)) : [];
/** One may be removed while it is looked for. */
const records = (): CompanionRecord[] =>
  inRuntime('.json').flatMap((name) => {
    try {
      return [JSON.parse(readFileSync(path.join(runtime(), name), 'utf8')) as CompanionRecord];
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
      throw error;
    }
  });
const log = (): string => {
  const file = path.join(data(), 'codex-companion.log');
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
};
const hook = (payload: object = {}, env: Env = {}) =>
  runHook(
    home,
    'codex-session',
    {
      session_id: thread,
      cwd: home.project,
      hook_event_name: 'SessionStart',
      source: 'startup',
      transcript_path: '/t',
      ...payload,
    },
    { env: { ...plugin, ...env }, host: ['--host', 'codex'] },
  );
/** A busy machine may take longer for it than a hook waits. */
const registered = () => until('it is registered', () => records()[0]?.state === 'registered');
const ended = (cwd = home.project) => hook({ hook_event_name: 'SessionEnd', reason: 'other', cwd });
const project = async (cwd = home.project): Promise<string> =>
  (await answer(home.env, cwd, ['send', 'nobody', '--json'], 'x')).project as string;
const card = async (): Promise<Record<string, unknown>> =>
  (await liveCards(home, await project(), 1))[0] ?? {};
const override = (fields: object, mode = 0o600): string => {
  const file = path.join(data(), 'hosts', 'codex-session.json');
  mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
  chmodSync(data(), 0o700);
  writeFileSync(
    file,
    JSON.stringify({
      version: 1,
      host: 'codex-session',
      principal_id: 'dave',
      workspace: home.project,
      ...fields,
    }),
  );
  chmodSync(file, mode);
  return file;
};

describe('a start', () => {
  it('[HOST-147, HOST-148] leaves a companion that outlives the hook and holds the registration under the thread’s id', async () => {
    const run = await hook();
    expect(run).toMatchObject({ code: 0, stdout: '', stderr: '' });
    expect(run.ms).toBeLessThan(2_500);
    expect(await card()).toMatchObject({
      session_id: thread,
      principal_id: `codex-thread-${thread}`,
      host_kind: 'codex',
      generation: 1,
      project: await project(),
    });
    const [record] = records();
    expect(alive(record?.pid ?? 0)).toBe(true);
    const { native_delivery } = await answer(
      home.env,
      home.project,
      [
        'message',
        'send',
        '--project',
        await project(),
        '--sender',
        'me',
        '--recipient',
        thread,
        '--target-kind',
        'session',
        '--idempotency-key',
        'k',
        '--payload-stdin',
      ],
      'hello',
    );
    expect(native_delivery).toMatchObject({ adapter_kind: 'codex-queue' });
  });

  it('[HOST-146, HOST-137] is that of startup or resume, of a thread id, in a directory, and of the plugin; nothing else registers', async () => {
    const file = path.join(home.dir, 'file');
    writeFileSync(file, 'no directory');
    const not = [
      { source: 'clear' },
      { source: 'compact' },
      { session_id: 'no-thread' },
      { session_id: `${thread}0` },
      { cwd: path.join(home.dir, 'gone') },
      { cwd: file },
      { cwd: '' },
      { cwd: '.' },
      { cwd: 'src/..' },
      { cwd: `${home.project}\0` },
      { cwd: '/'.padEnd(5_000, 'x') },
      { cwd: 7 },
      { hook_event_name: 'UserPromptSubmit' },
      { agent_id: thread },
    ];
    for (const payload of not) expect(await hook(payload)).toMatchObject({ code: 0, stdout: '', stderr: '' });
    expect(await hook({}, { PLUGIN_ROOT: '' })).toMatchObject({ code: 0, stdout: '', stderr: '' });
    expect(records()).toEqual([]);
    expect(recordsOf(home).map(({ outcome }) => outcome)).toEqual(Array(not.length + 1).fill('skipped'));
    expect(await hook({ source: 'resume' })).toMatchObject({ code: 0, stderr: '' });
    expect(records()).toHaveLength(1);
  });

  it('[HOST-148] whose router refuses registers nothing', async () => {
    const run = await hook({}, { POSTBELL_ROUTER_SOCKET: path.join(home.dir, 'x'.repeat(120)) });
    expect(run.code).toBe(0);
    await until('the companion gives up', () => log().includes('session registration failed'), 20_000);
    await until('it ends', () => records().length === 0);
    await until('its socket is gone', () => inRuntime('.sock').length === 0);
  });

  it('[HOST-152] writes its record as soon as its socket is bound, and marks it when the router has accepted', async () => {
    // A router that cannot be started keeps it in the first state.
    const blocked = { POSTBELL_ROUTER_SOCKET: path.join(home.dir, 'nobody.sock') };
    writeFileSync(path.join(home.dir, 'nobody.sock'), 'not a socket');
    const starting = hook({}, blocked);
    await until('the first state', () => records()[0]?.inode !== undefined);
    const [first] = records();
    expect(first?.state).toBe('starting');
    expect(lstatSync(first?.socket ?? '').isSocket()).toBe(true);
    await starting;
    await until('it gives up', () => records().length === 0, 20_000);
    await hook();
    await registered();
    const second = records()[0] as CompanionRecord;
    const [process_, ...others] = companionsOf(home.dir);
    const stat = readFileSync(`/proc/${process_?.pid}/stat`, 'utf8');
    const { dev, ino } = lstatSync(second.socket, { bigint: true });
    expect(others).toEqual([]);
    expect(second).toEqual({
      version: 1,
      pid: process_?.pid,
      // The 22nd field of proc(5); the second may hold anything, and ends with the last parenthesis.
      start_time: stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19],
      thread,
      workspace: home.project,
      token: expect.stringMatching(/^[0-9a-f]{64}$/),
      socket: path.join(runtime(), inRuntime('.sock')[0] as string),
      inode: `${dev}:${ino}`,
      state: 'registered',
    });
    expect([first?.pid === second.pid, first?.token === second.token]).toEqual([false, false]);
    // The token is what opens that socket.
    const ask = (token: string) =>
      askPrivately(second.socket, JSON.stringify({ token, verb: 'summary', text: 'x' }), systemClock, 2_000);
    expect([await ask('0'.repeat(64)), await ask(second.token)]).toEqual([undefined, '{"ok":true}']);
    const modes = [second.socket, path.join(runtime(), inRuntime('.json')[0] as string)].map(
      (file) => lstatSync(file as string).mode & 0o777,
    );
    expect(modes).toEqual([0o600, 0o600]);
  });
});

describe('another start', () => {
  it('[HOST-150] replaces the one that runs, also from another directory; the end of the old directory does not end the new one', async () => {
    await hook();
    const before = await card();
    const [first] = records();
    const other = path.join(home.dir, 'other');
    mkdirSync(other);
    await hook({ source: 'resume', cwd: other });
    await until('the old one ends', () => !alive(first?.pid ?? 0));
    await liveCards(home, await project(), 0);
    const [moved] = await liveCards(home, await project(other), 1);
    expect(moved).toMatchObject({ session_id: thread, project: await project(other) });
    await ended();
    expect(recordsOf(home).at(-1)).toMatchObject({ outcome: 'skipped' });
    await hook({ source: 'resume' });
    expect(await card()).toMatchObject({ generation: (before.generation as number) + 1 });
    expect(records()).toHaveLength(1);
    expect(inRuntime('.sock')).toHaveLength(1);
  });

  it('[HOST-153] during a start, or with a socket of nobody, is refused with one line; the file is left alone', async () => {
    await hook();
    await card();
    const starting = locksIn(runtime()).tryTake(`companion-${thread}`);
    const before = records();
    const { code, stderr } = await hook({ source: 'resume' });
    expect([code, records()]).toEqual([0, before]);
    expect(stderr).toMatch(/^postbell: session registration failed\. companion_busy: [^\n]*\n$/);
    starting?.release();
    const [record] = records();
    process.kill(record?.pid ?? 0, 'SIGKILL');
    await until('it is dead', () => !alive(record?.pid ?? 0));
    const foreign = String(record?.socket).replace(/[0-9a-f]{8}\.sock$/, 'ffffffff.sock');
    const server = createServer().listen(foreign);
    home.atEnd(() => server.close());
    await until('it listens', () => existsSync(foreign));
    const inode = lstatSync(foreign).ino;
    expect((await hook()).stderr).toMatch(/companion_busy: .*ffffffff\.sock is of no companion on record/);
    expect(lstatSync(foreign).ino).toBe(inode);
  });

  it('[HOST-154, HOST-155] with the record of a dead one takes its place: its own socket goes, another stays, and the log says so', async () => {
    await hook();
    const [first] = records();
    process.kill(first?.pid ?? 0, 'SIGKILL');
    await until('it is dead', () => !alive(first?.pid ?? 0));
    expect(existsSync(first?.socket as string)).toBe(true);
    await hook();
    expect(existsSync(first?.socket as string)).toBe(false);
    expect(log()).toMatch(
      new RegExp(`companion ${first?.pid} had ended without a word; its record was removed at a start`),
    );
    // Without an inode: of an earlier format, or killed just before its socket stood on record.
    const stays: string[] = [];
    for (const source of ['startup', 'resume', 'resume']) {
      const [killed] = records();
      process.kill(killed?.pid ?? 0, 'SIGKILL');
      await until('it is dead', () => !alive(killed?.pid ?? 0));
      const { inode: _, ...old } = killed as CompanionRecord;
      writeFileSync(path.join(runtime(), inRuntime('.json')[0] as string), JSON.stringify(old), {
        mode: 0o600,
      });
      stays.push(killed?.socket as string);
      expect((await hook({ source })).stderr).toBe('');
      expect(stays.filter((socket) => !existsSync(socket))).toEqual([]);
    }
    expect(lstatSync(path.join(data(), 'codex-companion.log')).mode & 0o777).toBe(0o600);
    // At the end of a session, too.
    const [third] = records();
    process.kill(third?.pid ?? 0, 'SIGKILL');
    await until('it is dead', () => !alive(third?.pid ?? 0));
    await ended();
    expect(log()).toContain(
      `companion ${third?.pid} had ended without a word; its record was kept for a socket that stays at the end of its session`,
    );
    // What stays is accounted for also by one that ends as it should, and the next one begins; then nothing is left.
    const ends = async (): Promise<void> => {
      expect((await hook({ source: 'resume' })).stderr).toBe('');
      const [running] = records();
      process.kill(running?.pid ?? 0, 'SIGTERM');
      await until('it has ended', () => !alive(running?.pid ?? 0));
    };
    for (const _ of [1, 2]) {
      await ends();
      expect(records()).toMatchObject([{ former: expect.arrayContaining(stays) }]);
    }
    for (const socket of stays) rmSync(socket);
    await ends();
    expect(records()).toEqual([]);
  });

  it('[HOST-152] a socket that was put in the place of its own is not removed by it', async () => {
    await hook();
    const [record] = records();
    const socket = record?.socket as string;
    rmSync(socket);
    const server = createServer().listen(socket);
    home.atEnd(() => server.close());
    await until('it listens', () => existsSync(socket));
    const inode = lstatSync(socket).ino;
    process.kill(record?.pid ?? 0, 'SIGTERM');
    await until('the companion ends', () => !alive(record?.pid ?? 0));
    expect(lstatSync(socket).ino).toBe(inode);
  });

  it('takes the place of one whose socket somebody removed', async () => {
    await hook();
    const [first] = records();
    rmSync(first?.socket as string);
    expect((await hook({ source: 'resume' })).stderr).toBe('');
    await until('the first has ended', () => !alive(first?.pid ?? 0));
    expect(log()).toContain('its socket was taken away; it ends');
    await until('the second is registered', () => records()[0]?.state === 'registered');
    const [second] = records();
    expect(second?.pid).not.toBe(first?.pid);
    expect(inRuntime('.sock')).toEqual([path.basename(second?.socket as string)]);
    expect(await card()).toMatchObject({ session_id: thread });
    // Where nobody starts it anew, it ends by itself: the thread's server rings from then on.
    rmSync(second?.socket as string);
    await until('the second has ended', () => !alive(second?.pid ?? 0), 10_000);
    expect(records()).toEqual([]);
  });

  it('is refused with one line, in time for its hook, where the one that runs does not make room', async () => {
    await hook();
    const [first] = records();
    process.kill(first?.pid ?? 0, 'SIGSTOP');
    home.atEnd(() => process.kill(first?.pid ?? 0, 'SIGCONT'));
    const { code, stderr } = await hook({ source: 'resume' });
    expect([code, stderr]).toEqual([
      0,
      `postbell: session registration failed. companion_busy: the companion ${first?.pid} does not make room\n`,
    ]);
    expect(records()).toEqual([first]);
  });

  it('[HOST-152] a socket with another inode at the path of a dead one stays, at a start and at the end of a session', async () => {
    await hook();
    const [record] = records();
    const socket = record?.socket as string;
    process.kill(record?.pid ?? 0, 'SIGKILL');
    await until('it is dead', () => !alive(record?.pid ?? 0));
    // Made while the old one is there: an inode that is free is given to the next file.
    const aside = path.join(home.dir, 'aside.sock');
    const server = createServer().listen(aside);
    home.atEnd(() => server.close());
    await until('it listens', () => existsSync(aside));
    renameSync(aside, socket);
    const { ino } = lstatSync(socket);
    await ended();
    expect(lstatSync(socket).ino).toBe(ino);
    expect((await hook({ source: 'resume' })).stderr).toBe('');
    await registered();
    expect(records()).toMatchObject([{ former: [socket] }]);
    expect(inRuntime('.sock')).toHaveLength(2);
    expect(lstatSync(socket).ino).toBe(ino);
  });

  it('[HOST-157] of another process that registers the thread ends it, with the line in its log', async () => {
    await hook();
    const [record] = records();
    await card();
    // The record of one that died long ago: two companions that do not know of each other, at the same router.
    const file = path.join(runtime(), inRuntime('.json')[0] as string);
    const socket = record?.socket.replace(/[0-9a-f]{8}\.sock$/, 'ffffffff.sock');
    const dead = { ...record, pid: 4_194_304, start_time: '1', socket, former: [record?.socket] };
    writeFileSync(file, JSON.stringify(dead), { mode: 0o600 });
    await hook({ source: 'resume' });
    await until('the first is replaced', () => !alive(record?.pid ?? 0));
    expect(log()).toContain(`${thread} ${replacedLine}`);
    expect(records()).toHaveLength(1);
    expect(alive(records()[0]?.pid ?? 0)).toBe(true);
  });
});

describe('what others could reach', () => {
  it('is insecure_path: no token goes to such a socket, no such record is read, and nothing is repaired', async () => {
    await hook();
    await registered();
    const [record] = records();
    const socket = record?.socket as string;
    chmodSync(socket, 0o666);
    expect((await hook({ source: 'resume' })).stderr).toMatch(/registration failed\. insecure_path: /);
    expect([lstatSync(socket).mode & 0o777, alive(record?.pid ?? 0)]).toEqual([0o666, true]);
    chmodSync(socket, 0o600);
    const file = path.join(runtime(), inRuntime('.json')[0] as string);
    chmodSync(file, 0o644);
    expect((await hook({ source: 'resume' })).stderr).toMatch(/registration failed\. insecure_path: /);
    expect(lstatSync(file).mode & 0o777).toBe(0o644);
    chmodSync(file, 0o600);
    expect((await hook({ source: 'resume' })).stderr).toBe('');
  });
});

describe('the override', () => {
  it('[SES-024, HOST-151, HOST-144] names the thread in exactly its real workspace, and a declared name goes before it', async () => {
    override({});
    await hook();
    expect(await card()).toMatchObject({ principal_id: 'dave', project: await project() });
    const link = path.join(home.dir, 'link');
    symlinkSync(home.project, link);
    await hook({ source: 'resume', cwd: link });
    expect(await card()).toMatchObject({ principal_id: 'dave' });
    const other = realpathSync(home.dir);
    await hook({ source: 'resume', cwd: other });
    expect((await liveCards(home, await project(other), 1))[0]).toMatchObject({
      principal_id: `codex-thread-${thread}`,
    });
    await hook({ source: 'resume' }, { POSTBELL_RECIPIENT: 'erin' });
    expect(await card()).toMatchObject({ principal_id: 'erin' });
  });

  const broken: [string, () => void][] = [
    ['open to others', () => void override({}, 0o644)],
    ['malformed', () => writeFileSync(override({}), '{')],
    ['of another host', () => void override({ host: 'codex' })],
    ['without a workspace', () => void override({ workspace: undefined })],
    [
      'a symbolic link',
      () => {
        const file = override({});
        const real = path.join(home.dir, 'elsewhere.json');
        writeFileSync(real, readFileSync(file), { mode: 0o600 });
        rmSync(file);
        symlinkSync(real, file);
      },
    ],
  ];
  for (const [what, make] of broken)
    it(`[SES-024, HOST-151, HOST-156] that is ${what} registers nothing; the reason is printed and logged`, async () => {
      make();
      const { code, stderr } = await hook();
      expect(code).toBe(0);
      expect(stderr).toMatch(
        /^postbell: session registration failed\. insecure_path: the Codex override does not count: .*codex-session\.json/,
      );
      expect(log()).toContain(
        'session registration failed: insecure_path: the Codex override does not count',
      );
      expect(records()).toEqual([]);
      const { stdout } = await postbell(home.env, home.project, ['router', 'status']);
      if (stdout !== '') expect(JSON.parse(stdout).live_connections).toBe(0);
    });
});

describe('its end', () => {
  it('comes with its Codex, which need not tell it', async () => {
    // In the place of a Codex: the nearest process above that is no shell.
    const host = spawn('sleep', ['300'], { stdio: 'ignore' });
    home.atEnd(() => host.kill('SIGKILL'));
    const script = `const {spawnSync}=require('child_process');spawnSync(process.execPath,[${JSON.stringify(path.join(process.cwd(), 'dist/postbell.cjs'))},'hook','codex-session','--host','codex'],{input:${JSON.stringify(JSON.stringify({ session_id: thread, cwd: home.project, hook_event_name: 'SessionStart', source: 'startup', transcript_path: '/t' }))}});setInterval(()=>{},1e6)`;
    const fake = spawn(process.execPath, ['-e', script], {
      env: { ...home.env, ...plugin },
      cwd: home.project,
      stdio: 'ignore',
    });
    home.atEnd(() => fake.kill('SIGKILL'));
    await card();
    const [record] = records();
    fake.kill('SIGKILL');
    await until('the companion ends', () => !alive(record?.pid ?? 0), 10_000);
    expect(log()).toContain('its Codex ended without a SessionEnd');
    expect([records(), inRuntime('.sock')]).toEqual([[], []]);
  });
});

describe('a command that rings', () => {
  it('ends with all that it started, also where its companion is killed', async () => {
    codex.play({ hangs: true, child: true });
    await hook();
    const scope = ['--project', await project(), '--sender', 'me', '--recipient', thread];
    await card();
    const words = ['message', 'send', ...scope, '--target-kind', 'session', '--idempotency-key', 'k'];
    const sent = postbell(home.env, home.project, [...words, '--payload-stdin'], 'hello');
    await until('it rings', () => codex.entries().some(({ child }) => child !== undefined));
    const pids = codex.entries().flatMap(({ pid, child }) => pid ?? child ?? []);
    expect(pids.map(alive)).toEqual([true, true]);
    process.kill(records()[0]?.pid ?? 0, 'SIGKILL');
    for (const pid of pids) await until('all of it has ended', () => !alive(pid), 8_000);
    await sent;
  });
});

describe('a restart', () => {
  it('[HOST-200] under the same thread finds the failures and the reservation as they were', async () => {
    codex.play({ says: 'Error: not today', exits: 1 });
    await hook();
    await card();
    const scope = [
      '--project',
      await project(),
      '--sender',
      'me',
      '--recipient',
      thread,
      '--target-kind',
      'session',
    ];
    const words = ['message', 'send', ...scope, '--idempotency-key', 'k', '--payload-stdin'];
    const { code, stderr } = await postbell(home.env, home.project, words, 'hello');
    expect([code, stderr]).toEqual([1, expect.stringContaining('codex_queue_rejected')]);
    const starts = codex.starts().length;
    expect(starts).toBe(3);
    const failures = async (): Promise<unknown> => {
      const server = await openOther(
        home,
        { ...plugin, POSTBELL_LISTENER: 'off' },
        { name: 'codex-mcp-client' },
      );
      await server.call('bind_codex_session', { thread_id: thread, cwd: home.project });
      const { data: found } = await server.call('failed_deliveries', { action: 'list' });
      await server.close();
      return found;
    };
    const before = await failures();
    expect(before).toMatchObject({ failed: [{ reason: 'codex_queue_rejected' }] });
    const [record] = records();
    process.kill(record?.pid ?? 0, 'SIGKILL');
    await until('it is dead', () => !alive(record?.pid ?? 0));
    codex.play({});
    await hook({ source: 'resume' });
    await card();
    expect(await failures()).toEqual(before);
    // What the first one rang for is not rung again before its reservation ends.
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    expect(codex.starts()).toHaveLength(starts);
  });
});
