// `postbell agent setup`: one file, and nothing else.

import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Home, makeHome, until } from './home.ts';
import { answer, finished, postbell, program } from './postbell.ts';

let home: Home;
beforeEach(() => {
  home = makeHome();
});
afterEach(() => home.end());

const data = (): string => home.env.POSTBELL_HOME as string;
const file = (): string => path.join(data(), 'hosts', 'claude.json');
const words = ['agent', 'setup', 'claude', '--principal', 'builder'];
const run = (...more: string[]) => postbell(home.env, home.project, [...words, ...more]);
const written = () => JSON.parse(readFileSync(file(), 'utf8')) as Record<string, unknown>;
const below = (at: string): string[] => readdirSync(at, { recursive: true, encoding: 'utf8' }).sort();

describe('agent setup claude', () => {
  it('[SES-119] writes one owner-private config file, and does nothing else', async () => {
    const before = below(home.dir);
    expect(await run()).toMatchObject({ code: 0, stderr: '' });
    const made = ['data', 'data/hosts', 'data/hosts/claude.json'];
    expect(below(home.dir)).toEqual([...before, ...made].sort());
    expect(made.map((one) => statSync(path.join(home.dir, one)).mode & 0o777)).toEqual([0o700, 0o700, 0o600]);
    expect(written()).toEqual({
      version: 1,
      host: 'claude',
      principal_id: 'builder',
      server_name: 'postbell-channel',
    });
    const { code, stderr } = await postbell(home.env, home.project, ['router', 'status']);
    expect([code, stderr]).toEqual([1, expect.stringContaining('router_unreachable')]);
    home.start(['router']);
    const answers = async () => (await postbell(home.env, home.project, ['router', 'status'])).code === 0;
    await until('a router answers', answers);
    const { project } = await answer(home.env, home.project, ['send', 'nobody', '--json'], 'x');
    const discover = ['message', 'discover', '--project', String(project)];
    expect(await answer(home.env, home.project, discover)).toEqual({ cards: [] });
  });

  it('[SES-121] needs a principal by the rules of identifiers, before anything is written', async () => {
    const bad = ['/root', 'C:\\work', '\\\\host\\share', ' ', 'x'.repeat(201)];
    for (const principal of [undefined, ...bad]) {
      const given = principal === undefined ? [] : ['--principal', principal];
      const ended = await postbell(home.env, home.project, ['agent', 'setup', 'claude', ...given]);
      expect([ended.code, ended.stdout]).toEqual([1, '']);
      expect(ended.stderr).toMatch(
        /^postbell: (?:path_shaped_identifier|invalid_request): principal [^\n]+\n$/,
      );
    }
    expect(existsSync(data())).toBe(false);
    expect(
      (await postbell(home.env, home.project, [...words.slice(0, 3), '--principal', ' n\u0061\u0308h ']))
        .code,
    ).toBe(0);
    expect(written().principal_id).toBe('n\u00e4h');
  });

  it('takes a summary of 200 characters and no more, ignores a model, and keeps a project', async () => {
    expect((await run('--work-summary', `${'\u{1f600}'.repeat(200)}x`)).code).toBe(1);
    expect(existsSync(data())).toBe(false);
    const summary = '\u{1f600}'.repeat(200);
    const done = await run('--work-summary', summary, '--model', 'opus', '--project', 'elsewhere');
    expect(done).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/^postbell: --model is ignored[^\n]*\n$/),
    });
    expect(written()).toMatchObject({ work_summary: summary, project: 'elsewhere' });
    expect(Object.keys(written())).not.toContain('model');
    expect(readFileSync(file(), 'utf8')).not.toContain('opus');
    expect((await run('--replace')).code).toBe(0);
    expect(Object.keys(written()).sort()).toEqual(['host', 'principal_id', 'server_name', 'version']);
  });

  it('[SES-124] is refused with the path where there is one, unless it is to be replaced, and is never half', async () => {
    await run();
    const before = readFileSync(file(), 'utf8');
    const again = await run('--work-summary', 'other');
    expect([again.code, again.stdout]).toEqual([1, '']);
    expect(again.stderr).toContain(file());
    expect(readFileSync(file(), 'utf8')).toBe(before);
    expect(JSON.parse((await run('--json')).stderr)).toMatchObject({ error: { details: { path: file() } } });
    let running = true;
    const texts = new Set<string>();
    const reading = (async () => {
      for (; running; await new Promise((resolve) => setTimeout(resolve, 0)))
        texts.add(readFileSync(file(), 'utf8'));
    })();
    const summaries = ['a', 'b', 'c', 'd'].map((one) => one.repeat(200));
    for (const summary of summaries) expect((await run('--replace', '--work-summary', summary)).code).toBe(0);
    running = false;
    await reading;
    const shown = [...texts].map((text) => JSON.parse(text).work_summary);
    for (const one of shown) expect([undefined, ...summaries]).toContain(one);
    expect(written().work_summary).toBe('d'.repeat(200));
    expect(below(path.dirname(file()))).toEqual(['claude.json']);
  });

  it('says that it failed where the file system took a part of the file only; the one before stays', async () => {
    await run();
    const before = readFileSync(file(), 'utf8');
    const limited = ['-c', 'ulimit -f 1; "$0" "$@"', process.execPath, program, ...words];
    const long = ['--replace', '--project', '\u65e5'.repeat(190), '--work-summary', '\u65e5'.repeat(190)];
    const { code, stdout, stderr } = await finished('bash', [...limited, ...long], home.env, home.project);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(/store_unwritable: .*EFBIG/);
    expect(readFileSync(file(), 'utf8')).toBe(before);
    expect(below(path.dirname(file()))).toEqual(['claude.json']);
  });

  it('[SES-124] of several at once one wins, and the others are refused', async () => {
    const all = await Promise.all(['a', 'b', 'c', 'd'].map((one) => run('--work-summary', one)));
    expect(all.filter(({ code }) => code === 1)).toHaveLength(3);
    const winner = all.findIndex(({ code }) => code === 0);
    expect(written().work_summary).toBe('abcd'[winner]);
  });

  it('[SES-125, SES-126] answers the two commands exactly, and a path that a shell would split in quotes', async () => {
    const { code, stdout } = await run('--json');
    expect(code).toBe(0);
    const registration = `claude mcp add --transport stdio --scope user postbell-channel -- postbell host claude --config ${file()}`;
    const launch = 'claude --dangerously-load-development-channels server:postbell-channel';
    expect(JSON.parse(stdout)).toEqual({
      host: 'claude',
      config_path: file(),
      mode: 'channel',
      principal_id: 'builder',
      session_identity: 'host',
      registration_command: registration,
      launch_command: launch,
      next_command: registration,
    });
    const text = (await run('--replace')).stdout;
    expect(text.split('\n')).toEqual(expect.arrayContaining([`  ${registration}`, `  ${launch}`]));
    const odd = { ...home.env, POSTBELL_HOME: path.join(home.dir, "it's here") };
    const answered = await postbell(odd, home.project, [...words, '--json']);
    expect(JSON.parse(answered.stdout).registration_command).toMatch(
      / --config '[^']*\/it'\\''s here\/hosts\/claude\.json'$/,
    );
  });

  it('[SES-125] says that the file alone registers nothing, and what must be started and how', async () => {
    const { stdout } = await run();
    expect(stdout).toMatch(/The file alone registers nothing/);
    expect(stdout).toMatch(/runner must be started next/);
    expect(stdout).toMatch(/session must be launched with channels on/);
  });

  it.each([
    ['', 'usage', 'name the host; agent setup takes claude, codex, codex-session, gemini, acp'],
    [
      'emacs',
      'invalid_request',
      'no such host: "emacs"; agent setup takes claude, codex, codex-session, gemini, acp',
    ],
  ])('[SES-120] refuses the host %j with the list', async (host, code, message) => {
    const given = host === '' ? [] : [host];
    const principal = ['--principal', 'p', '--json'];
    const ended = await postbell(home.env, home.project, ['agent', 'setup', ...given, ...principal]);
    expect([ended.code, ended.stdout]).toEqual([1, '']);
    expect(JSON.parse(ended.stderr).error).toMatchObject({ code, message });
    expect(existsSync(data())).toBe(false);
  });

  it('has no workspace, and takes no other word', async () => {
    for (const more of [['--workspace', '.'], ['--command', 'x'], ['surplus'], ['--principal', 'twice']]) {
      const ended = await run(...more);
      expect([ended.code, ended.stderr]).toEqual([1, expect.stringMatching(/^postbell: usage: /)]);
    }
    expect(existsSync(data())).toBe(false);
  });

  it('moves nothing in a terminal, whatever the directories are called, and its command still leads there', async () => {
    const odd = path.join(home.project, "o'dd\u001b[2J\u009b\u202e\n");
    mkdirSync(odd);
    const env = { ...home.env, POSTBELL_HOME: path.join(odd, 'data') };
    for (const host of ['claude', 'codex', 'codex-session', 'gemini']) {
      const place = host === 'claude' ? [] : ['--workspace', odd];
      const setUp = ['agent', 'setup', host, '--principal', 'p', ...place];
      const { code, stdout, stderr } = await postbell(env, home.project, setUp);
      expect([host, code, stderr]).toEqual([host, 0, '']);
      expect(stdout.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    }
    const again = ['agent', 'setup', 'codex-session', '--principal', 'p', '--workspace', odd];
    const { next_command } = await answer(env, home.project, [...again, '--replace', '--json']);
    const there = String(next_command).replace('codex', 'pwd');
    const { stdout } = await finished('bash', ['-c', there], env, '/');
    expect(stdout).toBe(`${odd}\n`);
  });

  it.each(['data', 'data/hosts'])('refuses to write where others can: %s', async (open) => {
    mkdirSync(path.join(data(), 'hosts'), { recursive: true, mode: 0o700 });
    chmodSync(path.join(home.dir, open), 0o777);
    const ended = await run();
    expect([ended.code, ended.stderr]).toEqual([1, expect.stringMatching(/^postbell: insecure_path: /)]);
    expect(existsSync(file())).toBe(false);
    chmodSync(path.join(home.dir, open), 0o700);
  });
});

describe('agent setup of the other hosts', () => {
  const at = (host: string): string => path.join(data(), 'hosts', `${host}.json`);
  const setUp = (host: string, ...more: string[]) =>
    postbell(home.env, home.project, ['agent', 'setup', host, '--principal', 'builder', ...more]);
  const config = (host: string) => JSON.parse(readFileSync(at(host), 'utf8')) as Record<string, unknown>;
  const agent = ['--command', 'my-agent --acp'];
  const others = [
    ['codex', [], {}, 'app-server', 'generated', (file: string) => `postbell host codex --config ${file}`],
    ['codex-session', [], {}, 'queue', 'host', () => `cd ${home.project} && codex`],
    [
      'gemini',
      [],
      { command: ['gemini', '--acp'] },
      'acp',
      'generated',
      (file: string) => `postbell host acp --config ${file}`,
    ],
    [
      'acp',
      agent,
      { command: ['my-agent', '--acp'] },
      'acp',
      'generated',
      (file: string) => `postbell host acp --config ${file}`,
    ],
  ] as const;

  it.each(others)(
    '[SES-120, SES-125, HOST-218] %s: its one file, its keys, and that the file alone registers nothing',
    async (host, more, extra, mode, session_identity, next) => {
      const before = below(home.dir);
      const json = await setUp(host, '--json', ...more);
      expect([json.code, json.stderr]).toEqual([0, '']);
      const made = ['data', 'data/hosts', `data/hosts/${host}.json`];
      expect(below(home.dir)).toEqual([...before, ...made].sort());
      expect(statSync(at(host)).mode & 0o777).toBe(0o600);
      const workspace = home.project;
      expect(config(host)).toEqual({ version: 1, host, principal_id: 'builder', workspace, ...extra });
      expect(JSON.parse(json.stdout)).toEqual({
        host,
        config_path: at(host),
        mode,
        principal_id: 'builder',
        session_identity,
        next_command: next(at(host)),
      });
      const { stdout } = await setUp(host, '--replace', ...more);
      expect(stdout).toMatch(/The file alone registers nothing/);
      expect(/runner must be started next/.test(stdout)).toBe(host !== 'codex-session');
      expect(stdout).toContain(`\n  ${next(at(host))}\n`);
      expect(stdout).toContain('"builder"');
      expect(stdout).toContain(home.project);
    },
  );

  it('[SES-122] the workspace is a real path, and of a directory that is there', async () => {
    const real = path.join(home.dir, 'real');
    mkdirSync(real);
    symlinkSync(real, path.join(home.dir, 'link'));
    writeFileSync(path.join(home.dir, 'file'), '');
    for (const [host, more] of others.map(([name, words_]) => [name, words_] as const)) {
      for (const missing of ['gone', 'file'].map((name) => path.join(home.dir, name))) {
        const ended = await setUp(host, '--workspace', missing, ...more);
        expect([ended.code, ended.stdout]).toEqual([1, '']);
        expect(ended.stderr).toContain(
          `invalid_request: the workspace ${JSON.stringify(missing)} is no directory`,
        );
        expect(existsSync(at(host))).toBe(false);
      }
      expect((await setUp(host, '--workspace', '../link', ...more)).code).toBe(0);
      expect(config(host).workspace).toBe(real);
      expect((await setUp(host, '--replace', ...more)).code).toBe(0);
      expect(config(host).workspace).toBe(home.project);
    }
    await run();
    expect(Object.keys(written())).not.toContain('workspace');
  });

  it('a command is of acp alone, which needs one, and is split as a shell would, with nothing expanded', async () => {
    for (const host of ['claude', 'codex', 'codex-session', 'gemini'])
      expect((await setUp(host, ...agent)).stderr).toBe(
        `postbell: usage: --command is for acp alone; ${host} has its own (see --help)\n`,
      );
    expect((await setUp('acp')).stderr).toMatch(/^postbell: invalid_request: acp needs --command/);
    for (const command of ['', '  ', "agent 'x", 'agent "x', 'agent \\', "'' x"])
      expect((await setUp('acp', '--command', command)).stderr).toMatch(/^postbell: invalid_request: /);
    expect(existsSync(data())).toBe(false);
    const said = `"/opt/my agents/a" --flag='$HOME' $(id) a\\ b`;
    expect((await setUp('acp', '--command', said)).code).toBe(0);
    expect(config('acp').command).toEqual(['/opt/my agents/a', '--flag=$HOME', '$(id)', 'a b']);
  });

  it('what its host could not read again is not written', async () => {
    const ended = await setUp('acp', '--command', 'x'.repeat(65_000), '--work-summary', '\u65e5'.repeat(200));
    expect([ended.code, ended.stderr]).toEqual([1, expect.stringMatching(/at most 64 KiB/)]);
    expect(existsSync(data())).toBe(false);
  });
});

describe('on Windows', () => {
  it.each([words, ['host', 'claude', '--config', 'x.json'], ['claude']])(
    'postbell %s %s ends with unsupported_platform, before anything is there',
    async (...command) => {
      const mock = path.join(home.dir, 'windows.cjs');
      writeFileSync(mock, "Object.defineProperty(process, 'platform', { value: 'win32' });\n");
      const ended = await postbell({ ...home.env, NODE_OPTIONS: `--require ${mock}` }, home.project, command);
      expect([ended.code, ended.stdout]).toEqual([1, '']);
      expect(ended.stderr).toMatch(
        /^postbell: unsupported_platform: [^\n]+ \(durable messages work; wake-up does not\)\n$/,
      );
      expect(existsSync(data())).toBe(false);
    },
  );
});
