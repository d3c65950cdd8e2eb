// Hooks in general: exit 0 on every path, one record, nothing printed that is not meant, within their time.

import { execFile, spawn } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Home, makeHome } from './home.ts';
import { recordsOf, runHook } from './hook.ts';
import { answer, type Env, postbell, program } from './postbell.ts';

let home: Home;
beforeEach(() => {
  home = makeHome();
});
afterEach(() => home.end());

const events = ['session-start', 'prompt', 'stop-gate'] as const;
const env = { POSTBELL_RECIPIENT: 'reviewer' };
const data = () => home.env.POSTBELL_HOME as string;
const database = () => path.join(data(), 'postbell.db');
const mail = (text = 'SECRET-BODY') => answer(home.env, home.project, ['send', 'reviewer', '--json'], text);
const run = (event: string, payload: object | string = { session_id: 's1', source: 'startup' }) =>
  runHook(home, event, payload, { env });

describe.each(events)('postbell hook %s', (event) => {
  it('[HOST-219, HOST-088] ends with 0 and one record, whatever it is given', async () => {
    await mail();
    const inputs = [
      '',
      'not json',
      '[]',
      'null',
      '"text"',
      '{"session_id":7}',
      '{"session_id":"../x"}',
      '\u0000\u0001',
      `{"session_id":"s1","x":"${'y'.repeat(1_000_000)}"}`,
    ];
    for (const input of inputs) {
      const { code, records, block, ms } = await run(event, input);
      expect([input.slice(0, 20), code, records.length]).toEqual([input.slice(0, 20), 0, 1]);
      expect(Object.keys(records[0] as object)).toEqual(['hook', 'time', 'host', 'outcome', 'reason']);
      expect(records[0]).toMatchObject({ hook: event, host: 'claude' });
      if (!input.startsWith('{')) expect([block, records[0]?.outcome]).toEqual([undefined, 'error']);
      expect(ms).toBeLessThan(event === 'prompt' ? 3_000 : 10_000);
    }
  }, 40_000);

  it('[HOST-219] does the same where the store is missing, foreign, corrupt or unreadable', async () => {
    expect((await run(event)).records).toHaveLength(1);
    const broken: [string, () => void, RegExp][] = [
      [
        'corrupt',
        () => writeFileSync(database(), 'garbage '.repeat(1_000)),
        /inbox: uncaught store_unreadable/,
      ],
      [
        'a directory',
        () => {
          home.env.POSTBELL_HOME = path.join(home.dir, 'second');
          mkdirSync(database(), { recursive: true, mode: 0o700 });
          chmodSync(data(), 0o700);
        },
        /inbox: uncaught (store_unreadable|insecure_path|store_unwritable)/,
      ],
    ];
    for (const [what, breakIt, reason] of broken) {
      breakIt();
      const { code, block, records, stderr } = await run(event);
      expect([what, code, block, records.length]).toEqual([what, 0, undefined, 1]);
      expect([what, records[0]?.outcome]).toEqual([what, 'error']);
      expect(records[0]?.reason).toMatch(reason);
      expect(stderr).toMatch(/^postbell: inbox: (store_unreadable|insecure_path|store_unwritable)\n$/);
    }
  }, 20_000);

  it('[HOST-220, MSG-125] waits for a locked store 2 s and no longer, and goes on', async () => {
    await mail();
    const holder = new BetterSqlite3(database());
    holder.exec('BEGIN IMMEDIATE; UPDATE message SET payload = payload');
    try {
      const { code, ms, records } = await run(event);
      expect([code, records.length]).toEqual([0, 1]);
      expect(ms).toBeLessThan(3_500);
    } finally {
      holder.exec('ROLLBACK');
      holder.close();
    }
  }, 20_000);

  it('[HOST-231] reads its input whole, also where a character is split; more than 16 MiB is an error', async () => {
    const split = await new Promise<number | null>((resolve) => {
      const child = spawn(process.execPath, [program, 'hook', event, '--host', 'claude'], {
        cwd: home.project,
        env: { ...home.env, ...env, CLAUDE_PROJECT_DIR: home.project },
      });
      const bytes = Buffer.from(JSON.stringify({ session_id: 'säß', source: 'startup' }));
      const at = bytes.indexOf(0xc3) + 1;
      child.stdin.write(bytes.subarray(0, at));
      setTimeout(() => child.stdin.end(bytes.subarray(at)), 100);
      child.on('close', resolve);
    });
    expect([split, recordsOf(home).at(-1)?.outcome === 'error']).toEqual([0, false]);
    const huge = await run(event, `{"session_id":"s1","x":"${'y'.repeat(17 * 1_048_576)}"}`);
    expect([huge.code, huge.records[0]?.outcome]).toEqual([0, 'error']);
    expect(huge.records[0]?.reason).toMatch(/^input too long/);
    expect(huge.block).toBeUndefined();
  }, 20_000);

  it('[HOST-228] ignores fields that it does not know and misses none that are optional', async () => {
    await mail();
    for (const payload of [
      { session_id: 's1' },
      { session_id: 's1', source: 'teleported', hook_event_name: 7, cwd: null, new_field: { a: [1] } },
      { session_id: 's1', source: 7, stop_hook_active: 'yes', prompt: ['x'] },
    ]) {
      const { code, records } = await run(event, payload);
      expect([code, records[0]?.outcome === 'error']).toEqual([0, false]);
    }
  });

  it('[HOST-050] says and records nothing of a sub-agent', async () => {
    await mail();
    for (const more of [{ agent_id: 'a1' }, { agent_type: 'helper' }]) {
      const { stdout, records } = await run(event, { session_id: 's1', source: 'startup', ...more });
      expect([stdout, records[0]?.reason]).toEqual(['', 'sub-agent']);
    }
    if (!existsSync(database())) return;
    const store = new BetterSqlite3(database(), { readonly: true });
    expect(store.prepare('SELECT count(*) AS n FROM launcher').get()).toEqual({ n: 0 });
    store.close();
  });

  it('[HOST-229, HOST-083] does nothing of one host\u2019s under another, or under none that is named', async () => {
    await mail();
    for (const host of [[], ['--host', 'codex'], ['--host', 'else']]) {
      const { code, stdout, records } = await runHook(home, event, { session_id: 's1' }, { env, host });
      expect([code, records.length, records[0]?.host]).toEqual([0, 1, host[1] === 'codex' ? 'codex' : null]);
      if (event === 'stop-gate') expect([stdout, records[0]?.outcome]).toEqual(['', 'skipped']);
    }
  });
});

/** Runs before the program: what it changes is what the machine does to a hook. */
function preload(name: string, code: string): Env {
  const file = path.join(home.dir, `${name}.cjs`);
  writeFileSync(file, code);
  return { ...env, NODE_OPTIONS: `--require ${file}` };
}

describe('a defect', () => {
  it.each(events)(
    '[HOST-219, HOST-088] anywhere in %s ends it with 0, without a block, with one record and no text of the error',
    async (event) => {
      await mail();
      for (const where of ['lstatSync', 'readFileSync', 'statSync', 'mkdirSync']) {
        const throwing = preload(
          `throws-${where}`,
          `const fs = require('node:fs'); const real = fs.${where};
         fs.${where} = (file, ...more) => { if (String(file).includes('postbell.db') || String(file).includes('runtime') || String(file).includes('stop-gate')) throw new TypeError('SECRET-TEXT'); return real(file, ...more); };`,
        );
        const { code, block, stdout, stderr, records } = await runHook(
          home,
          event,
          { session_id: 's1' },
          { env: throwing },
        );
        expect([where, code, records.length]).toEqual([where, 0, 1]);
        expect(`${stdout}${stderr}${JSON.stringify(records)}`).not.toContain('SECRET');
        if (records[0]?.outcome === 'error' && event !== 'stop-gate') expect(block).toBeUndefined();
      }
      const always = preload(
        'always',
        `require('node:fs').lstatSync = () => { throw new TypeError('SECRET-TEXT'); };`,
      );
      const { code, block } = await runHook(home, event, { session_id: 's1' }, { env: always });
      expect([code, block]).toEqual([0, undefined]);
    },
    30_000,
  );
});
describe('what hooks write', () => {
  it('holds codes and counts, never what others wrote', async () => {
    await mail('SECRET-BODY');
    for (const event of events) await run(event);
    const log = readFileSync(path.join(data(), 'hook-outcomes.jsonl'), 'utf8');
    expect(log).not.toMatch(/SECRET|reviewer|shop|SELECT/);
    expect(statSync(path.join(data(), 'hook-outcomes.jsonl')).mode & 0o777).toBe(0o600);
  });

  it('begins its log anew at 64 KiB and keeps the one before', async () => {
    await run('prompt');
    const file = path.join(data(), 'hook-outcomes.jsonl');
    const line = readFileSync(file, 'utf8');
    const full = line.repeat(Math.floor(65_536 / line.length));
    writeFileSync(file, full.slice(line.length));
    await run('prompt');
    expect(existsSync(`${file}.1`)).toBe(false);
    await run('prompt');
    expect(readFileSync(`${file}.1`, 'utf8')).toHaveLength(full.length);
    expect(recordsOf(home)).toHaveLength(1);
  });

  it('begins on a line of its own after one that was cut off, and is bounded where no older log can be', async () => {
    const prompt = () =>
      postbell(home.env, home.project, ['hook', 'prompt', '--host', 'claude'], '{"session_id":"s1"}');
    await prompt();
    const file = path.join(data(), 'hook-outcomes.jsonl');
    const line = readFileSync(file, 'utf8');
    writeFileSync(file, line.slice(0, 40));
    await prompt();
    const [torn, ...whole] = readFileSync(file, 'utf8').trim().split('\n');
    expect([torn, whole.length, JSON.parse(whole[0] as string).hook]).toEqual([
      line.slice(0, 40),
      1,
      'prompt',
    ]);
    mkdirSync(`${file}.1`);
    writeFileSync(file, line.repeat(Math.floor(65_536 / line.length)));
    await prompt();
    expect(readFileSync(file, 'utf8').trim().split('\n')).toHaveLength(1);
    expect(readdirSync(data()).filter((name) => name.startsWith('hook-outcomes'))).toEqual([
      'hook-outcomes.jsonl',
      'hook-outcomes.jsonl.1',
    ]);
  });

  it('the stamp of a gate is never put on a file that a link leads to', async () => {
    await mail();
    const victim = path.join(home.dir, 'victim');
    writeFileSync(victim, '');
    utimesSync(victim, 1_000, 1_000);
    mkdirSync(path.join(data(), 'runtime'), { recursive: true, mode: 0o700 });
    symlinkSync(victim, path.join(data(), 'runtime', 'gate-s1.lock'));
    const { block, records } = await run('stop-gate');
    expect(statSync(victim).mtimeMs).toBe(1_000_000);
    // Its turn cannot be taken; it is a ring all the same.
    expect([block !== undefined, records[0]?.reason]).toEqual([true, 'turn: insecure_path']);
    const store = new BetterSqlite3(database(), { readonly: true });
    expect(store.prepare('SELECT told FROM reservation_cover').pluck().all()).toEqual([1]);
    store.close();
  });

  it('[MSG-125] is no more than each of them may', async () => {
    await mail();
    await postbell(home.env, home.project, ['hook', 'session-start', '--host', 'claude'], '{}');
    const tables = () => {
      const store = new BetterSqlite3(database(), { readonly: true });
      const names = store
        .prepare(`SELECT name FROM sqlite_schema WHERE type = 'table'`)
        .pluck()
        .all() as string[];
      const all = names.map((name) => [name, JSON.stringify(store.prepare(`SELECT * FROM "${name}"`).all())]);
      store.close();
      return Object.fromEntries(all) as Record<string, string>;
    };
    const changedBy = async (event: string) => {
      const before = tables();
      await run(event);
      const after = tables();
      return Object.keys(after).filter((name) => after[name] !== before[name]);
    };
    expect(await changedBy('prompt')).toEqual([]);
    expect(await changedBy('stop-gate')).toEqual(['reservation', 'reservation_cover']);
    expect(await changedBy('stop-gate')).toEqual([]);
    expect(await changedBy('session-start')).toEqual(['launcher']);
  });

  it('[HOST-227, HOST-075] an unreadable inbox lets prompt and start go on, and the person is told at the start', async () => {
    await mail();
    const store = new BetterSqlite3(database());
    store.exec('ALTER TABLE receipt RENAME TO receipt_gone');
    store.close();
    for (const event of ['prompt', 'session-start'] as const) {
      const { code, stderr, context, banner, records } = await run(event);
      expect([code, stderr]).toEqual([0, 'postbell: inbox: store_unreadable\n']);
      expect(records).toMatchObject([{ outcome: 'error', reason: 'inbox: uncaught store_unreadable' }]);
      expect(context).not.toContain('waiting');
      if (event === 'session-start') expect(banner).toContain('inbox: store_unreadable');
    }
  });

  it('[HOST-075, MSG-124, HOST-074] a store without tables of mail, or none, is silence, and is not made by a prompt or a gate', async () => {
    for (const event of ['prompt', 'stop-gate']) {
      const { stdout, stderr, records } = await run(event);
      expect([stdout, stderr, records[0]?.outcome]).toEqual(['', '', 'skipped']);
      expect(readdirSync(data())).toEqual(['hook-outcomes.jsonl']);
    }
    new BetterSqlite3(database()).close();
    for (const event of ['prompt', 'stop-gate']) {
      const { stdout, stderr, records } = await run(event);
      expect([stdout, stderr, records[0]?.outcome]).toEqual(['', '', 'skipped']);
    }
  });
});

describe('the Stop gate as a process', () => {
  it('[HOST-086] takes its ids back where stdout is closed', async () => {
    await mail();
    const closed = await new Promise<number | null>((resolve) => {
      const child = execFile(
        'sh',
        ['-c', `"$0" "$1" hook stop-gate --host claude >&-`, process.execPath, program],
        { cwd: home.project, env: { ...home.env, ...env, CLAUDE_PROJECT_DIR: home.project } },
        () => resolve(child.exitCode),
      );
      child.stdin?.end(JSON.stringify({ session_id: 's1' }));
    });
    expect([closed, recordsOf(home).at(-1)]).toMatchObject([
      0,
      { outcome: 'error', reason: 'print: closed' },
    ]);
    expect((await run('stop-gate')).block).toContain('1 message waiting');
    expect((await run('stop-gate')).block).toBeUndefined();
  });

  it('[HOST-085] in a directory that it cannot write blocks a first Stop only', async () => {
    await mail();
    mkdirSync(path.join(data(), 'stop-gate'), { mode: 0o700 });
    chmodSync(path.join(data(), 'stop-gate'), 0o500);
    const stop = (active: boolean) =>
      runHook(home, 'stop-gate', { session_id: 's1', stop_hook_active: active }, { env, plain: true });
    const first = await stop(false);
    expect([first.block !== undefined, first.records[0]?.outcome]).toEqual([true, 'error']);
    const later = await stop(true);
    expect([later.block, later.records[0]?.outcome]).toEqual([undefined, 'error']);
    expect(later.records[0]?.reason).toBe('ledger: store_unwritable');
    chmodSync(path.join(data(), 'stop-gate'), 0o700);
  });

  it('[HOST-085] has its ledger flushed and in place before the block goes out; killed between the two it blocks no more for that', async () => {
    await mail();
    const log = path.join(home.dir, 'order.log');
    const watching = preload(
      'order',
      `const fs = require('node:fs'); const { appendFileSync, fsyncSync, renameSync, writeSync } = fs;
       const note = (text) => appendFileSync(${JSON.stringify(log)}, text + '\\n');
       fs.fsyncSync = (...all) => { note('fsync'); return fsyncSync(...all); };
       fs.renameSync = (from, to) => { note('rename ' + require('node:path').basename(to)); return renameSync(from, to); };
       fs.writeSync = (to, ...all) => { if (to === 1) { note('print'); process.kill(process.pid, 'SIGKILL'); } return writeSync(to, ...all); };`,
    );
    const run = (more: Env) =>
      postbell(
        { ...home.env, ...more, CLAUDE_PROJECT_DIR: home.project },
        home.project,
        ['hook', 'stop-gate', '--host', 'claude'],
        '{"session_id":"s1"}',
      );
    expect(await run(watching)).toMatchObject({ code: null, stdout: '' });
    const order = readFileSync(log, 'utf8')
      .split('\n')
      .filter((line) => /fsync|s1\.json|print/.test(line));
    expect(order).toEqual(['fsync', 'rename s1.json', 'print']);
    expect(readFileSync(path.join(data(), 'stop-gate', 's1.json'), 'utf8')).toMatch(
      /"blocked":\[\[1,"shop~[0-9a-f]+","msg_/,
    );
    expect((await run(env)).stdout).toBe('');
    const waiting = await answer(home.env, home.project, ['inbox', 'receive', '--recipient', 'reviewer']);
    expect(waiting.messages).toHaveLength(1);
  });
  it('[HOST-122] blocks all the same while the store is locked for writers', async () => {
    await mail();
    const holder = new BetterSqlite3(database());
    holder.exec('BEGIN IMMEDIATE; UPDATE message SET payload = payload');
    try {
      const { block, records, ms } = await run('stop-gate');
      expect(block).toContain('1 message waiting');
      expect(records[0]).toMatchObject({ outcome: 'error', reason: 'coverage: store_busy' });
      expect(ms).toBeLessThan(4_000);
    } finally {
      holder.exec('ROLLBACK');
      holder.close();
    }
  });
});

describe('the launcher\u2019s record', () => {
  it('[SES-054, HOST-052] that nobody can make, without ps or on Windows, is said by the record; reminders go on', async () => {
    await mail();
    await run('session-start', { session_id: 's1', source: 'startup' });
    const hidden = preload(
      'hidden',
      `const fs = require('node:fs');
       for (const name of ['readFileSync', 'existsSync', 'statSync', 'lstatSync']) {
         const real = fs[name];
         fs[name] = (file, ...more) => { if (String(file).startsWith('/proc/')) { if (name === 'existsSync') return false; throw new Error('no /proc'); } return real(file, ...more); };
       }`,
    );
    const windows = preload('windows', `Object.defineProperty(process, 'platform', { value: 'win32' });`);
    for (const [how, more, outcome, reason] of [
      ['no ps', { ...hidden, PATH: home.dir }, 'error', 'launcher: unknown; lines: 1'],
      ['Windows', windows, 'notified', 'launcher: windows; lines: 1'],
    ] as const) {
      const { code, context, records } = await runHook(
        home,
        'session-start',
        { session_id: 's2', source: 'clear' },
        { env: more },
      );
      expect([how, code]).toEqual([how, 0]);
      expect(context).toContain('1 message waiting for "reviewer"');
      expect(records).toMatchObject([{ outcome, reason }]);
      const store = new BetterSqlite3(database(), { readonly: true });
      expect(store.prepare('SELECT count(*) AS n FROM alias').get()).toEqual({ n: 0 });
      store.close();
    }
  });
  it('[SES-054, HOST-052] that cannot be written leaves the ids apart, is said, and reminders go on under the hook\u2019s own id', async () => {
    await mail();
    const holder = new BetterSqlite3(database());
    holder.exec('BEGIN IMMEDIATE; UPDATE message SET payload = payload');
    try {
      const { code, context, banner, records } = await run('session-start', {
        session_id: 's2',
        source: 'clear',
      });
      expect(code).toBe(0);
      expect(context).toContain('this session is "s2"');
      expect(context).toContain('1 message waiting for "reviewer"');
      expect(records).toMatchObject([{ outcome: 'error', reason: 'launcher: uncaught store_busy' }]);
      expect(banner).toContain('launcher: store_busy');
    } finally {
      holder.exec('ROLLBACK');
      holder.close();
    }
  });
});

describe('10,000 messages', () => {
  it('[HOST-222] in the store, all of them consumed, make no hook slower by 20 ms; each stays within its bound', async () => {
    await mail();
    const fresh = await medians();
    const store = new BetterSqlite3(database());
    store.exec(`PRAGMA synchronous = OFF; BEGIN;
      WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
        INSERT INTO message (message_id, project, sender, content_type, privacy, created_at, transport, source_host, payload, payload_sha256)
        SELECT 'm' || i, m.project, 'x', 'text/plain', 'private', m.created_at, 'cli', 'cli', '"x"', m.payload_sha256 FROM n, message m WHERE m.seq = 1;
      WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
        INSERT INTO delivery (delivery_id, message_id, project, recipient, target_kind, open)
        SELECT 'd' || i, 'm' || i, m.project, 'reviewer', 'principal', 0 FROM n, message m WHERE m.seq = 1;
      WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
        INSERT INTO receipt (receipt_id, delivery_id, receipt_kind, idempotency_key, value, actor, recorded_at)
        SELECT 'r' || i, 'd' || i, 'intake', 'k', 'ingested', 'reviewer', '2026-01-01T00:00:00.000Z' FROM n;
      COMMIT`);
    store.close();
    const used = await medians();
    const bounds = { 'session-start': 300, prompt: 200, 'stop-gate': 200 };
    // The bounds are those of a quiet machine: twice as much is a defect on any.
    for (const event of events) {
      expect([event, used[event] < 2 * bounds[event]]).toEqual([event, true]);
      expect([event, used[event] - fresh[event] < 20 + 0.5 * fresh[event]]).toEqual([event, true]);
    }
  }, 60_000);

  async function medians(): Promise<Record<(typeof events)[number], number>> {
    const all = { 'session-start': [], prompt: [], 'stop-gate': [] } as Record<
      (typeof events)[number],
      number[]
    >;
    for (let nth = 0; nth < 20; nth += 1) for (const event of events) all[event].push((await run(event)).ms);
    const median = (of: number[]) => of.toSorted((a, b) => a - b)[10] as number;
    return {
      'session-start': median(all['session-start']),
      prompt: median(all.prompt),
      'stop-gate': median(all['stop-gate']),
    };
  }
});

describe('an input', () => {
  it('[HOST-219] that is never closed is read as far as it came, and the hook ends within its limit', async () => {
    for (const [written, ms] of [
      ['{"session_id":"s1"}', 2_000],
      ['{"session_id":"s1"}\n', 2_000],
      ['{"session_id":', 5_000],
    ] as const) {
      const child = spawn(process.execPath, [program, 'hook', 'prompt', '--host', 'claude'], {
        cwd: home.project,
        env: { ...home.env, ...env, CLAUDE_PROJECT_DIR: home.project },
      });
      child.stdin.write(written);
      const began = Date.now();
      const code = await new Promise((resolve) => child.on('exit', resolve));
      expect([written, code, Date.now() - began < ms]).toEqual([written, 0, true]);
      child.stdin.destroy();
    }
    expect(recordsOf(home)).toHaveLength(3);
  }, 30_000);

  it('[HOST-231] from a pipe that fills late, in pieces, with more than a pipe holds, is read whole', async () => {
    const shell = (feed: string): Promise<number | null> =>
      new Promise((resolve) => {
        const child = spawn(
          'bash',
          ['-c', `${feed} | "$0" "$1" hook session-start --host claude`, process.execPath, program],
          {
            cwd: home.project,
            env: { ...home.env, ...env, CLAUDE_PROJECT_DIR: home.project },
          },
        );
        child.on('exit', resolve);
      });
    const late = `(printf '{"session'; sleep .3; printf '_id":"s1","source":"startup"}')`;
    const large = `(printf '{"session_id":"s1","x":"'; head -c 300000 /dev/zero | tr '\\0' y; sleep .2; printf '"}')`;
    for (const feed of [late, large]) expect(await shell(feed)).toBe(0);
    expect(recordsOf(home).map(({ reason }) => reason)).toEqual(['lines: 1', 'lines: 1']);
  });

  it('of a listener that comes late names its session all the same', async () => {
    await mail();
    const child = spawn(
      'bash',
      ['-c', `(sleep .4; printf '{"session_id":"s1"}') | "$0" "$1" wait`, process.execPath, program],
      {
        cwd: home.project,
        env: { ...home.env, ...env, CLAUDE_PROJECT_DIR: home.project },
        detached: true,
      },
    );
    const locks = () =>
      readdirSync(path.join(data(), 'runtime')).filter((name) => name.startsWith('listener-s'));
    await expect.poll(locks, { timeout: 5_000 }).toEqual(['listener-s1.lock']);
    process.kill(-(child.pid as number), 'SIGTERM');
  });
});
