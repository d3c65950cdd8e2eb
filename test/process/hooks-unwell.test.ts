// Hooks on a machine that is not well: whatever is stuck, damaged or in the way, the host goes on.

import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Home, makeHome } from './home.ts';
import { recordsOf, runHook } from './hook.ts';
import { answer, type Env, finished, postbell, program, root } from './postbell.ts';

let home: Home;
beforeEach(() => {
  home = makeHome();
});
afterEach(() => home.end());

const env = { POSTBELL_RECIPIENT: 'reviewer' };
const data = () => home.env.POSTBELL_HOME as string;
const mail = (text = 'SECRET-BODY') => answer(home.env, home.project, ['send', 'reviewer', '--json'], text);
const run = (event: string, payload: object | string = { session_id: 's1', source: 'startup' }) =>
  runHook(home, event, payload, { env });

describe('a hook on a machine that is not well', () => {
  const fake = (name: string, script: string): Env => {
    const bin = path.join(home.dir, 'fake-bin');
    mkdirSync(bin, { recursive: true });
    writeFileSync(path.join(bin, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    return { ...env, PATH: `${bin}:${home.env.PATH}` };
  };

  it('[HOST-122, HOST-219] with a git that never answers blocks all the same, and says that nothing was covered', async () => {
    await mail();
    execFileSync('git', ['init', '-q', home.project]);
    const stuck = fake('git', 'trap "" TERM\nsleep 8');
    const { block, records, ms } = await runHook(home, 'stop-gate', { session_id: 's1' }, { env: stuck });
    expect(block).toContain('1 message waiting');
    expect(records[0]).toMatchObject({ outcome: 'error', reason: 'coverage: project_unavailable' });
    expect(ms).toBeLessThan(5_000);
    const start = await runHook(
      home,
      'session-start',
      { session_id: 's1', source: 'startup' },
      { env: stuck },
    );
    expect(start.context).toContain('this session is "s1"; its inbox is "reviewer".');
    expect(start.ms).toBeLessThan(5_000);
  }, 20_000);

  it('[HOST-219] whose log is a FIFO, a link or a folder ends, and writes nowhere else', async () => {
    await mail();
    const log = path.join(data(), 'hook-outcomes.jsonl');
    const target = path.join(home.dir, 'target');
    writeFileSync(target, '');
    for (const make of [
      () => execFileSync('mkfifo', [log]),
      () => symlinkSync(target, log),
      () => mkdirSync(log),
    ]) {
      rmSync(log, { recursive: true, force: true });
      make();
      const run = await postbell(
        { ...home.env, ...env, CLAUDE_PROJECT_DIR: home.project },
        home.project,
        ['hook', 'prompt', '--host', 'claude'],
        '{"session_id":"s1"}',
      );
      expect([run.code, run.stderr]).toEqual([0, 'postbell: insecure_path\n']);
      expect(run.stdout).toContain('1 message waiting');
    }
    expect(readFileSync(target, 'utf8')).toBe('');
    rmSync(log, { recursive: true });
  });

  it('[HOST-228] takes an agent id that is null or empty for none', async () => {
    await mail();
    for (const more of [{ agent_id: null }, { agent_id: '', agent_type: null }])
      expect((await run('prompt', { session_id: 's1', ...more })).context).toContain('1 message waiting');
  });

  it.each([
    ['teleport', '--host', 'claude'],
    ['prompt', '--host', 'claude', '--softly'],
  ])(
    '[HOST-219] of words that a newer manifest may have ends with 0, and says so: %s %s %s %s',
    async (...words) => {
      const { code, stdout, stderr } = await postbell(home.env, home.project, ['hook', ...words], '{}');
      expect([code, stdout, stderr]).toEqual([0, '', 'postbell: this version knows no such hook\n']);
      expect(recordsOf(home)).toMatchObject([
        { hook: 'unknown', outcome: 'skipped', reason: 'unknown words' },
      ]);
    },
  );

  it('[HOST-219] under a Node that is too old ends with 0, and says so', async () => {
    const older = path.join(home.dir, 'older.cjs');
    writeFileSync(older, `Object.defineProperty(process.versions, 'node', { value: '18.20.0' })`);
    const old = (...words: string[]) =>
      finished(process.execPath, ['-r', older, program, ...words], home.env, home.project, '{}');
    const stderr = 'postbell: Node 18.20.0 is too old; at least 20\n';
    expect(await old('hook', 'prompt', '--host', 'claude')).toMatchObject({ code: 0, stderr });
    expect(await old('send', 'x')).toMatchObject({ code: 1, stderr });
  });

  it('[HOST-219] with a code cache of which a page was never written runs all the same', async () => {
    const copy = path.join(home.dir, 'copy');
    cpSync(path.join(root, 'dist'), path.join(copy, 'dist'), { recursive: true });
    symlinkSync(path.join(root, 'node_modules'), path.join(copy, 'node_modules'));
    const cache = path.join(copy, 'dist', 'hook.main.cache');
    const sound = readFileSync(cache);
    await mail();
    const damages: ((bytes: Buffer) => Buffer)[] = [
      (bytes) => bytes.fill(0, 40_960, 45_056),
      (bytes) => bytes.fill(0, 45_056),
      (bytes) => bytes.subarray(0, -1),
      (bytes) => bytes.fill(0),
      (bytes) => Buffer.alloc(0, bytes),
      // A byte here and there: V8 dies of about one in five.
      ...Array.from({ length: 10 }, (_, nth) => (bytes: Buffer) => {
        for (let at = 10_368 + 97 * nth; at < 70_000; at += 4_001) bytes[at] = (bytes[at] as number) ^ 0xff;
        return bytes;
      }),
    ];
    for (const [nth, damage] of damages.entries()) {
      writeFileSync(cache, damage(Buffer.from(sound)));
      const out = execFileSync(
        process.execPath,
        [path.join(copy, 'dist', 'postbell.cjs'), 'hook', 'prompt', '--host', 'claude'],
        {
          cwd: home.project,
          env: { ...home.env, ...env, CLAUDE_PROJECT_DIR: home.project },
          input: '{"session_id":"s1"}',
          encoding: 'utf8',
        },
      );
      expect([nth, out]).toEqual([nth, expect.stringContaining('1 message waiting')]);
    }
  });

  it('[HOST-081, HOST-084] two gates at once block once', async () => {
    await mail();
    for (let round = 0; round < 5; round += 1) {
      rmSync(path.join(data(), 'stop-gate'), { recursive: true, force: true });
      const gate = () =>
        postbell(
          { ...home.env, ...env, CLAUDE_PROJECT_DIR: home.project },
          home.project,
          ['hook', 'stop-gate', '--host', 'claude'],
          '{"session_id":"s1"}',
        );
      const both = await Promise.all([gate(), gate()]);
      expect(both.filter(({ stdout }) => stdout !== '')).toHaveLength(1);
    }
  });

  it('[HOST-062] does not read a config of any size', async () => {
    await mail('SECRET-BODY');
    mkdirSync(path.join(data(), 'hosts'), { recursive: true, mode: 0o700 });
    const file = path.join(data(), 'hosts', 'claude.json');
    writeFileSync(file, '{"version":1,"host":"claude","principal_id":"reviewer"}', { mode: 0o600 });
    truncateSync(file, 400_000_000);
    const { code, stdout, ms } = await runHook(home, 'prompt', { session_id: 's1' });
    expect([code, stdout]).toEqual([0, '']);
    expect(ms).toBeLessThan(2_000);
  });
});
