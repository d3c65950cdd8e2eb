// Whose mail a session's hooks speak of: the name declared at launch, the host's config file, or the session alone.

import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Home, makeHome } from './home.ts';
import { runHook } from './hook.ts';
import { answer, type Env, root } from './postbell.ts';
import { liveCards, openSession } from './session.ts';

let home: Home;
beforeEach(() => {
  home = makeHome();
});
afterEach(() => home.end());

let sent = 0;
/** Stores a message for `recipient`; @returns the project. */
async function mail(recipient: string, more: string[] = []): Promise<string> {
  sent += 1;
  const stored = await answer(home.env, home.project, ['send', recipient, '--json', ...more], `BODY-${sent}`);
  return stored.project as string;
}

const hosts = () => path.join(home.env.POSTBELL_HOME as string, 'hosts');
/** Writes hosts/claude.json as its owner has it. */
function config(value: object | string, mode = 0o600): string {
  mkdirSync(hosts(), { recursive: true, mode: 0o700 });
  chmodSync(home.env.POSTBELL_HOME as string, 0o700);
  const file = path.join(hosts(), 'claude.json');
  writeFileSync(file, typeof value === 'string' ? value : JSON.stringify(value));
  chmodSync(file, mode);
  return file;
}

const start = (env: Env = {}, payload: object = { session_id: 's1', source: 'startup' }) =>
  runHook(home, 'session-start', payload, { env });
const prompt = (env: Env = {}, payload: object = { session_id: 's1' }) =>
  runHook(home, 'prompt', payload, { env });
const stop = (env: Env = {}, payload: object = { session_id: 's1' }) =>
  runHook(home, 'stop-gate', payload, { env });
const named = { POSTBELL_RECIPIENT: 'reviewer' };

describe('the recipient of a session', () => {
  it('[HOST-058] is nobody but itself where nothing is declared: silent for all other mail', async () => {
    const project = await mail('reviewer');
    await mail('claude-session-s2');
    for (const run of [await prompt(), await stop()]) expect([run.stdout, run.stderr]).toEqual(['', '']);
    expect((await start()).context).not.toContain('waiting');
    await mail('claude-session-s1');
    expect((await prompt()).context).toMatch(
      /^Postbell: 1 message waiting for "claude-session-s1" in project/,
    );
    const meant = ['message', 'send', '--project', project, '--sender', 'me', '--recipient', 'reviewer'];
    const forS1 = ['--intended-session', 's1', '--idempotency-key', 'k', '--payload-stdin'];
    await answer(home.env, home.project, [...meant, ...forS1], 'meant for it');
    expect((await prompt()).context).toMatch(
      /^Postbell: 2 messages waiting for "claude-session-s1" in project/,
    );
    await openSession(home, { CLAUDE_CODE_SESSION_ID: 's1' });
    await liveCards(home, project, 1);
    await mail('s1', ['--session']).catch(() => {});
    const { context } = await prompt();
    expect(context.split('\n')).toHaveLength(2);
    expect(context).toContain('waiting for the live session "s1"');
    expect(context).not.toContain('reviewer');
  });

  it('[HOST-059, HOST-079] is the declared one, and nobody else, in start, prompt and gate', async () => {
    await mail('reviewer');
    await mail('reviewers');
    await mail('claude-session-s1');
    for (const run of [await start(named), await prompt(named)]) {
      expect(run.context.match(/waiting for/g)).toHaveLength(1);
      expect(run.context).toContain('Postbell: 1 message waiting for "reviewer" in project');
    }
    expect((await stop(named)).block).toContain('1 message waiting for "reviewer"');
    expect((await stop()).block).toContain('1 message waiting for "claude-session-s1"');
    config({ version: 1, host: 'claude', principal_id: 'reviewers' });
    expect((await stop()).block).toContain('1 message waiting for "reviewers"');
    rmSync(path.join(hosts(), 'claude.json'));
    const manifest = readFileSync(path.join(root, 'plugins/claude-code/hooks/hooks.json'), 'utf8');
    const handlers = (JSON.parse(manifest).hooks.Stop as { hooks: { args: string[] }[] }[]).flatMap(
      (group) => group.hooks,
    );
    expect(handlers.map(({ args }) => args.slice(1, 3).join(' '))).toEqual(['hook stop-gate', 'wait']);
    for (const run of [
      await prompt({ POSTBELL_RECIPIENT: 'someone' }),
      await stop({ POSTBELL_RECIPIENT: 'someone' }),
    ])
      expect(run.stdout).toBe('');
  });

  it('[HOST-060, HOST-061, SES-020] is that of hosts/claude.json where none is declared, in every project; of the file nothing else counts', async () => {
    config({
      version: 1,
      host: 'claude',
      principal_id: 'writer',
      project: 'POISON-PROJECT',
      auth_token: 'POISON-TOKEN',
      work_summary: 'POISON-SUMMARY',
    });
    const project = await mail('writer');
    const attic = path.join(home.dir, 'attic');
    mkdirSync(attic);
    const elsewhere = { CLAUDE_PROJECT_DIR: attic };
    for (const env of [{}, elsewhere]) {
      const run = await start(env);
      expect(run.context).toContain(`1 message waiting for "writer" in project "${project}"`);
      expect(run.stdout).not.toContain('POISON');
      expect((await prompt(env)).context).toContain(`"writer" in project "${project}"`);
    }
    const one = await openSession(home, { CLAUDE_CODE_SESSION_ID: 's1' });
    const two = await openSession(home, { CLAUDE_CODE_SESSION_ID: 's2', ...elsewhere });
    const who = async (session: typeof one) => (await session.call('get_my_session_id', {})).data;
    expect(await who(one)).toMatchObject({ principal_id: 'writer', project });
    expect((await who(two)).principal_id).toBe('writer');
    expect((await who(two)).project).not.toBe(project);
    for (const empty of ['', '  ', '\t']) {
      const run = await start({ POSTBELL_RECIPIENT: empty });
      expect([run.context.includes('writer'), run.banner, run.stderr]).toEqual([false, undefined, '']);
    }
    const refused = await prompt({ POSTBELL_RECIPIENT: '/root' });
    expect(refused.stdout).toBe('');
  }, 30_000);

  it('[HOST-062] of a file that cannot be trusted or read is nobody, without a word', async () => {
    await mail('writer');
    const good = { version: 1, host: 'claude', principal_id: 'writer' };
    const silent = async () => {
      const run = await prompt();
      expect([run.stdout, run.stderr, run.records[0]?.outcome]).toEqual(['', '', 'skipped']);
    };
    await silent();
    config(good);
    expect((await prompt()).context).toContain('"writer"');
    for (const mode of [0o644, 0o640, 0o604, 0o660, 0o602]) {
      config(good, mode);
      await silent();
    }
    for (const bad of [
      '',
      '{',
      '[]',
      'null',
      { version: 1 },
      { principal_id: 7 },
      { principal_id: '/root' },
    ]) {
      config(bad);
      await silent();
    }
    for (const principal_id of ['', ' ', 'x'.repeat(201), 'C:\\work']) {
      config({ ...good, principal_id });
      await silent();
    }
    const unreadable = config(good, 0o000);
    const closed = await runHook(home, 'prompt', { session_id: 's1' }, { plain: true });
    expect([closed.stdout, closed.stderr, closed.records[0]?.outcome]).toEqual(['', '', 'skipped']);
    if (process.getuid?.() === 0) {
      chmodSync(unreadable, 0o600);
      chownSync(unreadable, 65_534, 65_534);
      await silent();
    }
    rmSync(unreadable);
    const file = config(good);
    const aside = path.join(home.dir, 'aside.json');
    writeFileSync(aside, JSON.stringify(good), { mode: 0o600 });
    rmSync(file);
    symlinkSync(aside, file);
    await silent();
    rmSync(file);
    mkdirSync(file);
    await silent();
  }, 60_000);

  it.each([
    ['x'.repeat(201), 'invalid_request'],
    ['/root', ''],
    ['C:\\work', ''],
    ['C:/work', ''],
    ['\\\\host\\share', ''],
  ])(
    '[HOST-064, HOST-065] a declared %s is refused before any store: one line on stderr, one record, and in the start\u2019s output each time',
    async (name) => {
      const env = { POSTBELL_RECIPIENT: name };
      const one = /^POSTBELL_RECIPIENT ignored: POSTBELL_RECIPIENT .+\n$/;
      for (let nth = 1; nth <= 2; nth += 1) {
        const run = await start(env);
        expect(run.stderr).toMatch(one);
        expect(run.records).toMatchObject([{ hook: 'session-start', outcome: 'notified' }]);
        expect(run.context.split('\n')).toContain(run.stderr.trimEnd());
        expect(run.banner).toContain(run.stderr.trimEnd());
      }
      const run = await prompt(env);
      expect([run.stdout, run.records.length, run.records[0]?.outcome]).toEqual(['', 1, 'notified']);
      expect(run.stderr).toMatch(one);
      const nowhere = await prompt({ ...env, POSTBELL_HOME: path.join(home.dir, 'nowhere') });
      expect(nowhere.stderr).toMatch(one);
    },
  );

  it('[HOST-064] takes 200 characters', async () => {
    const name = 'x'.repeat(200);
    await mail(name);
    expect((await prompt({ POSTBELL_RECIPIENT: name })).context).toContain(`waiting for "${name}"`);
  });

  it('[HOST-073, HOST-074] that nobody ever heard of is asked about at a start, and never at a prompt', async () => {
    const hint =
      'POSTBELL_RECIPIENT "reviewer" has never been seen in any project \u2014 check it for a typo';
    const first = await start(named);
    expect(first.context.split('\n').filter((line) => line.startsWith(hint))).toHaveLength(1);
    expect((await prompt(named)).stdout).toBe('');
    await mail('someone');
    expect((await start(named)).context).toContain(hint);
    await mail('reviewer');
    const { context } = await start(named);
    expect(context).not.toContain('never been seen');
    const read = await answer(home.env, home.project, ['inbox', 'receive', '--recipient', 'reviewer']);
    const [{ receipt }] = read.messages as [{ receipt: object }];
    await answer(
      home.env,
      home.project,
      ['inbox', 'acknowledge', '--recipient', 'reviewer', '--receipts-stdin'],
      JSON.stringify([receipt]),
    );
    expect((await start(named)).context).not.toMatch(/never been seen|waiting/);
  });

  it('[HOST-072] is told who it is at every start', async () => {
    for (const source of ['startup', 'resume', 'clear', 'compact', 'fork', 'something-new']) {
      const { context } = await start(named, { session_id: 's1', source });
      expect(context).toMatch(
        /^Postbell: this session is "s1"; its inbox is "reviewer" in project "shop~[0-9a-f]{32}"\./,
      );
    }
  });

  it('[HOST-054, MSG-120] where payload and environment name two sessions neither counts, and it is recorded; without an id the wider match', async () => {
    const project = await mail('reviewer');
    await openSession(home, { CLAUDE_CODE_SESSION_ID: 's1', ...named });
    await liveCards(home, project, 1);
    await mail('s1', ['--session']).catch(() => {});
    const two = { ...named, CLAUDE_CODE_SESSION_ID: 'other' };
    const doubtful = await prompt(two);
    expect(doubtful.context.split('\n')).toHaveLength(1);
    expect(doubtful.context).toContain('waiting for "reviewer"');
    expect(doubtful.records[0]?.reason).toBe('session ids differ; lines: 1');
    expect((await prompt(named, {})).context.split('\n')).toHaveLength(2);
    expect((await prompt({ ...named, CLAUDE_CODE_SESSION_ID: 's1' })).context.split('\n')).toHaveLength(2);
    const nested = await prompt({ ...named, CODEX_THREAD_ID: 'thread', CLAUDE_CODE_SESSION_ID: 's1' });
    expect(nested.context.split('\n')).toHaveLength(2);
    expect((await prompt({ CLAUDE_CODE_SESSION_ID: 'other' })).stdout).toBe('');
  });
});

describe('mail to a session itself', () => {
  it('[HOST-069] counts alike for start, prompt, gate and listener: of one that is known its own, while it is live under the name', async () => {
    const project = await mail('nobody');
    for (const id of ['s1', 's2']) await openSession(home, { CLAUDE_CODE_SESSION_ID: id, ...named });
    await openSession(home, { CLAUDE_CODE_SESSION_ID: 's3', POSTBELL_RECIPIENT: 'other' });
    await liveCards(home, project, 3);
    for (const id of ['s1', 's1', 's2', 's3']) await mail(id, ['--session']);
    const gone = await openSession(home, { CLAUDE_CODE_SESSION_ID: 's4', ...named });
    await liveCards(home, project, 4);
    await mail('s4', ['--session']);
    await gone.close();
    await liveCards(home, project, 3);
    // In a project where it is not registered.
    const other = ['message', 'send', '--project', 'attic', '--sender', 'me', '--recipient', 's1'];
    const exact = ['--target-kind', 'session', '--idempotency-key', 'k', '--payload-stdin'];
    await answer(home.env, home.project, [...other, ...exact], 'x').catch(() => {});
    const meant = ['message', 'send', '--project', project, '--sender', 'me', '--recipient', 'reviewer'];
    const for2 = ['--intended-session', 's2', '--idempotency-key', 'k', '--payload-stdin'];
    await answer(home.env, home.project, [...meant, ...for2], 'for the second');
    const own = 'Postbell: 2 messages waiting for the live session "s1"';
    const runs = [
      (await start(named)).context,
      (await prompt(named)).context,
      (await stop(named)).block ?? '',
    ];
    for (const text of runs) {
      expect(text.match(/waiting for/g)).toHaveLength(1);
      expect(text).toContain(own);
    }
    const second = await prompt(named, { session_id: 's2' });
    expect(second.context).toMatch(
      /1 message waiting for "reviewer"[^\n]*\n.*1 message waiting for the live session "s2"/,
    );
    for (const id of ['s3', 's4'])
      expect((await prompt(named, { session_id: id })).context).not.toContain('live session');
    const listener = home.start(['wait'], { ...named, CLAUDE_PROJECT_DIR: home.project });
    listener.child.stdin?.end('{"session_id":"s2"}');
    expect((await listener.exited).code).toBe(2);
    expect(listener.stderr()).toContain('1 message waits for this session');
    const gated = home.start(['wait'], { ...named, CLAUDE_PROJECT_DIR: home.project });
    gated.child.stdin?.end('{"session_id":"s1"}');
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    // The gate has told it of both.
    expect(gated.child.exitCode).toBeNull();
  }, 30_000);
});

describe('the channel flag', () => {
  const folder = (level: number): string => path.join(home.dir, `bin-${level}`);
  /** A `ps` that shows shells, and at that level Claude Code with its flag mistyped; it counts its calls. */
  function fakePs(level: number): Env {
    mkdirSync(folder(level));
    const log = path.join(folder(level), 'log');
    const lines = [
      '#!/bin/sh',
      `echo "$@" >> '${log}'`,
      `n=$(wc -l < '${log}')`,
      `if [ "$n" -eq ${level} ]; then echo "1000$n claude \u2014dangerously-load-development-channels"`,
      'else echo "1000$n sh -c x"; fi',
    ];
    writeFileSync(path.join(folder(level), 'ps'), `${lines.join('\n')}\n`, { mode: 0o755 });
    return { PATH: `${folder(level)}:${home.env.PATH}` };
  }
  const calls = (level: number): string[] => {
    const log = path.join(folder(level), 'log');
    return existsSync(log) ? readFileSync(log, 'utf8').split('\n').filter(Boolean) : [];
  };

  it('[HOST-117] is looked for at a session\u2019s start alone, under Claude Code alone, where a config is there, six levels up', async () => {
    expect((await start(fakePs(1))).banner ?? '').not.toContain('mistyped');
    expect(calls(1)).toEqual([]);
    config({ version: 1, host: 'claude', principal_id: 'writer' });
    for (const level of [2, 3, 4, 5, 6, 7]) {
      const { banner = '' } = await start(fakePs(level));
      expect([level, banner.includes('the flag for channels is mistyped')]).toEqual([level, level <= 6]);
      expect(calls(level)).toHaveLength(6);
      expect(calls(level)[0]).toMatch(/^-ww -o ppid=,command= -p \d+$/);
    }
    const quiet = fakePs(8);
    await prompt(quiet);
    await stop(quiet);
    await runHook(home, 'session-start', { session_id: 's1' }, { env: quiet, host: [] });
    expect(calls(8)).toEqual([]);
  }, 30_000);
});
