// Faults of the machine: each is answered by a clear code, and what was answered before is there when it is over.

import { spawn } from 'node:child_process';
import { chmodSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { fillDisk, freeDisk, smallDisk, whyNoDisk } from './fake-disk.ts';
import { type Home, makeHome, until } from './home.ts';
import { recordsOf, runHook } from './hook.ts';
import { alive, answer, postbell, program, root } from './postbell.ts';
import { damage } from './raised.ts';
import { liveCards, openOther, openSession, type Session } from './session.ts';
import { typed } from './typed.ts';

const noDisk = whyNoDisk();

let home: Home;
let data: string;
let database: string;
beforeEach(() => {
  home = makeHome();
  data = home.env.POSTBELL_HOME as string;
  database = path.join(data, 'postbell.db');
});
afterEach(() => home.end());

const inbox = { project: 'p', recipient: 'bob' };
const letter = (key: string, payload = key): Record<string, unknown> => ({
  ...inbox,
  sender: 'alice',
  idempotency_key: key,
  payload,
});

/** The code of a command, or `done`. */
async function command(action: string, request: Record<string, unknown>, plain = false): Promise<string> {
  const [words, input] = typed(action, request);
  const { code, stdout, stderr } = await postbell(home.env, home.project, [...words, '--json'], input, plain);
  expect(code === 0 ? stderr : stdout).toBe('');
  return code === 0 ? 'done' : JSON.parse(stderr).error.code;
}

async function tool(session: Session, action: string, request: object): Promise<string> {
  const { isError, data: found } = await session.call('message', { action, ...request });
  return isError ? (found.error as { code: string }).code : 'done';
}

/** Payloads that wait for Bob, by the command. */
async function waiting(): Promise<unknown[]> {
  const words = ['inbox', 'receive', '--project', 'p', '--recipient', 'bob', '--limit', '100'];
  const { messages } = await answer(home.env, home.project, words);
  return (messages as { payload: unknown }[]).map(({ payload }) => payload);
}

function check(): void {
  const driver = new BetterSqlite3(database, { readonly: true });
  expect(driver.pragma('integrity_check')).toEqual([{ integrity_check: 'ok' }]);
  driver.close();
}

describe('a disk that is full', () => {
  beforeEach(({ skip }) => {
    if (noDisk !== undefined) skip(noDisk);
    smallDisk(home);
  });

  it('refuses what would be stored, shows what is, and takes it when there is room again', async () => {
    const router = home.start(['router']);
    const project = (await answer(home.env, home.project, ['send', 'nobody', '--json'], 'x'))
      .project as string;
    const session = await openSession(home, { CLAUDE_CODE_SESSION_ID: 's1', POSTBELL_RECIPIENT: 'bob' });
    await liveCards(home, project, 1);
    expect(await command('send', letter('first'))).toBe('done');
    fillDisk(data);
    const large = 'x'.repeat(60_000);
    for (let tries = 0; tries < 3; tries += 1) {
      expect(await command('send', letter('by command', large))).toBe('store_full');
      expect(await tool(session, 'send', letter('by tool', large))).toBe('store_full');
    }
    expect(await waiting()).toEqual(['first']);
    expect(await tool(session, 'poll', inbox)).toBe('done');
    freeDisk(data);
    expect(await command('send', letter('by command', large))).toBe('done');
    expect(await tool(session, 'send', letter('by tool', large))).toBe('done');
    expect(await waiting()).toEqual(['first', large, large]);
    expect(alive(router.pid) && alive(session.pid)).toBe(true);
    await liveCards(home, project, 1);
    check();
  });

  it('from the beginning is said to be full, and is no obstacle later', async () => {
    fillDisk(data);
    for (let tries = 0; tries < 2; tries += 1)
      expect(await command('send', letter('first'))).toBe('store_full');
    expect((await postbell(home.env, home.project, ['router', '--json'])).stderr).toMatch(
      /"code":"store_full"/,
    );
    freeDisk(data);
    expect(await command('send', letter('first'))).toBe('done');
    expect(await waiting()).toEqual(['first']);
  });
});

describe('a hook of Codex whose record cannot be written', () => {
  const start = {
    session_id: '01a2359b-9716-7d71-8e13-ff19cf36a487',
    hook_event_name: 'SessionStart',
    source: 'startup',
    transcript_path: '/t',
  };
  const hook = () =>
    runHook(
      home,
      'codex-session',
      { ...start, cwd: home.project },
      { env: { PLUGIN_ROOT: '/plugin' }, host: ['--host', 'codex'] },
    );

  it('on a full disk says once why the session is not registered, and nothing of a defect', async ({
    skip,
  }) => {
    if (noDisk !== undefined) skip(noDisk);
    smallDisk(home);
    expect(await command('send', letter('first'))).toBe('done');
    fillDisk(data);
    for (let tries = 0; tries < 2; tries += 1) {
      const { code, stdout, stderr } = await hook();
      expect([code, stdout]).toEqual([0, '']);
      expect(stderr).toMatch(/^postbell: session registration failed\. store_full: [^\n]*\n$/);
    }
    freeDisk(data);
    expect((await hook()).stderr).toBe('');
    expect(recordsOf(home).at(-1)).toMatchObject({ outcome: 'notified' });
  });

  it('says one thing once, also where the directory cannot be written', async () => {
    expect(await command('send', letter('first'))).toBe('done');
    chmodSync(data, 0o500);
    home.atEnd(() => chmodSync(data, 0o700));
    const prompt = ['hook', 'prompt', '--host', 'codex'];
    const { code, stderr } = await postbell(home.env, home.project, prompt, '{}', true);
    expect([code, stderr]).toEqual([0, 'postbell: inbox: store_unwritable\n']);
  });
});

describe('a file that may grow no further', () => {
  it('fails the write with a code and keeps what was stored, also where its journal cannot be folded in', async () => {
    expect(await command('send', letter('first'))).toBe('done');
    const before = statSync(database).size;
    const limited = (key: string, payload: string) => {
      const [words, input] = typed('send', letter(key, payload));
      const start = ['prlimit', '--fsize=100000', process.execPath, program, ...words];
      return run(start, input);
    };
    for (let tries = 0; tries < 3; tries += 1) {
      const failed = await limited('large', 'x'.repeat(60_000));
      expect(failed).toMatchObject({ code: 1, stdout: '' });
      expect(failed.stderr).toMatch(/^postbell: store_(?:unwritable|full): [^\n]*\n$/);
    }
    expect(before).toBeGreaterThan(100_000);
    expect(await limited('small', 'small')).toMatchObject({ code: 0, stderr: '' });
    expect(await waiting()).toEqual(['first', 'small']);
    expect(await command('send', letter('large'))).toBe('done');
    expect(await waiting()).toEqual(['first', 'small', 'large']);
    check();
  });

  function run(
    [file, ...args]: string[],
    input: string,
  ): Promise<{ code: number | null; stdout: string; stderr: string }> {
    const child = spawn(file as string, args, { cwd: home.project, env: home.env });
    home.atEnd(() => child.kill('SIGKILL'));
    const said = { stdout: '', stderr: '' };
    child.stdout.on('data', (chunk) => (said.stdout += String(chunk)));
    child.stderr.on('data', (chunk) => (said.stderr += String(chunk)));
    child.stdin.on('error', () => {});
    child.stdin.end(input);
    return new Promise((resolve) => child.on('close', (code) => resolve({ code, ...said })));
  }
});

describe('a store that may only be read', () => {
  beforeEach(async () => {
    expect(await command('send', letter('first'))).toBe('done');
  });
  const mode = (file: string): number => statSync(file).mode & 0o777;

  it('[MSG-006] by its mode is read, refuses to be written, and keeps its mode', async () => {
    chmodSync(database, 0o400);
    const before = readFileSync(database);
    const session = await openOther(
      home,
      { CLAUDE_CODE_SESSION_ID: 's1' },
      { words: ['--no-register'], plain: true },
    );
    for (const [action, request, code] of [
      ['poll', inbox, 'done'],
      ['send', letter('second'), 'store_unwritable'],
      ['poll', inbox, 'done'],
    ] as const) {
      expect([action, await command(action, request, true)]).toEqual([action, code]);
      expect([action, await tool(session, action, request)]).toEqual([action, code]);
      expect(mode(database)).toBe(0o400);
    }
    await session.close();
    expect(readFileSync(database).equals(before)).toBe(true);
    // SQLite made its index with the mode that the store had, and that stays: it is named.
    for (const file of [database, `${database}-shm`]) {
      const [words, input] = typed('send', letter('second'));
      const { stderr } = await postbell(home.env, home.project, words, input, true);
      expect(stderr).toMatch(/^postbell: store_unwritable: /);
      expect(stderr).toContain(`: ${file} (`);
      chmodSync(file, 0o600);
    }
    expect(await command('send', letter('second'), true)).toBe('done');
    expect(await waiting()).toEqual(['first', 'second']);
  });

  it('[MSG-006] of an older release is left as it was', async () => {
    rmSync(database);
    const driver = new BetterSqlite3(database);
    driver.pragma('journal_mode = WAL');
    driver.exec(readFileSync(path.join(root, 'src/store/sql/001-local-mail.sql'), 'utf8'));
    driver.pragma('user_version = 1');
    driver.close();
    chmodSync(database, 0o400);
    const before = readFileSync(database);
    for (const [action, request] of [
      ['poll', inbox],
      ['send', letter('second')],
    ] as const)
      expect([action, await command(action, request, true)]).toEqual([action, 'store_unwritable']);
    expect(readFileSync(database).equals(before)).toBe(true);
    expect(mode(database)).toBe(0o400);
  });

  it('by the mode of its directory is a clear code, and whole when that is mended', async () => {
    chmodSync(data, 0o500);
    home.atEnd(() => chmodSync(data, 0o700));
    for (const [action, request] of [
      ['poll', inbox],
      ['send', letter('second')],
    ] as const)
      expect([action, await command(action, request, true)]).toEqual([action, 'store_unwritable']);
    expect(mode(data)).toBe(0o500);
    chmodSync(data, 0o700);
    expect(await command('send', letter('second'), true)).toBe('done');
    expect(await waiting()).toEqual(['first', 'second']);
    check();
  });
});

describe('a store with damaged pages', () => {
  it('is said to be unreadable, and nothing about it is changed, nor another made', async () => {
    expect(await command('send', letter('first', 'x'.repeat(50_000)))).toBe('done');
    const whole = readFileSync(database);
    const files = readdirSync(data, { recursive: true, encoding: 'utf8' }).toSorted();
    const session = await openSession(home, { CLAUDE_CODE_SESSION_ID: 's1' }, ['--no-register']);
    damage(database);
    const damaged = readFileSync(database);
    for (const [action, request] of [
      ['send', letter('second')],
      ['poll', inbox],
      ['fetch', { ...inbox, message_id: 'none' }],
    ] as const) {
      expect([action, await command(action, request)]).toEqual([action, 'store_unreadable']);
      expect([action, await tool(session, action, request)]).toEqual([action, 'store_unreadable']);
    }
    await session.close();
    await until('the server has ended', () => !alive(session.pid));
    for (const words of [['mcp'], ['router']])
      expect(await postbell(home.env, home.project, words)).toEqual({
        code: 1,
        stdout: '',
        stderr: expect.stringMatching(/^postbell: store_unreadable: [^\n]*\n$/),
      });
    expect(readFileSync(database).equals(damaged)).toBe(true);
    expect(readdirSync(data, { recursive: true, encoding: 'utf8' }).toSorted()).toEqual(files);
    writeFileSync(database, whole);
    expect(await command('send', letter('second'))).toBe('done');
    expect(await waiting()).toEqual(['x'.repeat(50_000), 'second']);
  });
});

describe('a store that another process keeps locked', () => {
  it('is waited for 5 s, then busy; reads and the server\u2019s other calls go on meanwhile', async () => {
    const session = await openSession(home, { CLAUDE_CODE_SESSION_ID: 's1' }, ['--no-register']);
    expect(await command('send', letter('first'))).toBe('done');
    const holder = new BetterSqlite3(database);
    home.atEnd(() => holder.close());
    holder.exec('BEGIN IMMEDIATE');
    const timed = async (call: Promise<string>): Promise<[string, number]> => {
      const began = performance.now();
      return [await call, performance.now() - began];
    };
    const writes = [timed(command('send', letter('second'))), timed(tool(session, 'send', letter('third')))];
    for (const [code, ms] of [
      await timed(tool(session, 'poll', inbox)),
      await timed(command('poll', inbox)),
    ]) {
      expect(code).toBe('done');
      expect(ms).toBeLessThan(3_000);
    }
    for (const [code, ms] of await Promise.all(writes)) {
      expect(code).toBe('store_busy');
      expect(ms).toBeGreaterThan(4_900);
      expect(ms).toBeLessThan(9_000);
    }
    const late = timed(command('send', letter('second')));
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    holder.exec('ROLLBACK');
    expect((await late)[0]).toBe('done');
    expect(await tool(session, 'send', letter('third'))).toBe('done');
    expect(await waiting()).toEqual(['first', 'second', 'third']);
  });
});
