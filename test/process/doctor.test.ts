// Doctor as a person runs it: broken installations are named, sound ones are called sound, and nothing is changed.

import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { rowIds } from '../../src/protocol/doctor.ts';
import { brokenInstallations, faultTable } from './faults.ts';
import { until } from './home.ts';
import {
  changes,
  examined,
  type Installation,
  installPlugin,
  json,
  makeInstallation,
  type Row,
  snapshot,
} from './installation.ts';
import { answer, postbell, root } from './postbell.ts';
import { liveCards, openSession } from './session.ts';
import { openTerminal } from './terminal.ts';

let at: Installation;
beforeEach(async () => {
  at = await makeInstallation();
});
afterEach(() => at.end());

const shown = (words: string[] = []) => postbell(at.env, at.project, ['doctor', ...words]);

/** What doctor said of each, for docs/doctor.md where DOCTOR_TABLE names it. */
const told: { fault: string; row: Row }[] = [];
let sound = '';
const placeless = (text: string): string =>
  text.replaceAll(at.dir, '~').replaceAll(root, '/path/to/postbell').replaceAll(process.execPath, 'node');
afterAll(() => {
  const file = process.env.DOCTOR_TABLE;
  if (file === undefined) return;
  const page = readFileSync(file, 'utf8')
    .replace(
      /(\$ postbell doctor\n)[\s\S]*?(```)/,
      (_, asked: string, end: string) => `${asked}${sound}${end}`,
    )
    .replace(/(<!-- faults -->)[\s\S]*(<!-- end of faults -->)/, (_, begin: string, end: string) =>
      [begin, faultTable(told), end].join('\n\n'),
    );
  writeFileSync(file, page);
});

describe('a sound installation', () => {
  it('passes with exit 0, one line a row, and no file changes', async () => {
    const before = snapshot(at.dir);
    const { code, stdout, stderr } = await shown();
    sound = placeless(stdout);
    const lines = stdout.trimEnd().split('\n');
    expect([code, stderr, lines.at(-1)]).toEqual([0, '', 'PASS']);
    expect(lines.slice(0, -1).map((line) => line.split(/ +/)[1])).toEqual([...rowIds]);
    expect(lines.filter((line) => /^(warn|fail)/.test(line))).toEqual([]);
    expect(changes(before, snapshot(at.dir))).toEqual([]);
  });

  it('says the same as JSON, and takes no other words', async () => {
    const report = await examined(at);
    expect(report.verdict).toBe('PASS');
    expect(report.rows.map(({ id }) => id)).toEqual([...rowIds]);
    for (const words of [['all'], ['--yes'], ['--verbose']]) {
      const { code, stdout, stderr } = await shown(words);
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toMatch(/^postbell: usage: [^\n]*\n$/);
    }
  });
});

describe('a link among the private files', () => {
  it('is a socket of Codex, where it leads to one or to none any more; to anything else it is not private', async () => {
    const runtime = path.join(at.data, 'runtime');
    const link = path.join(runtime, 'codex-01.sock');
    const socket = path.join(at.dir, 'codex-socket');
    const listener = createServer().listen(socket);
    await until('it listens', () => existsSync(socket));
    const level = async (target: string): Promise<string> => {
      symlinkSync(target, link);
      const { row } = await examined(at);
      rmSync(link);
      return row('store-permissions').level;
    };
    expect(await level(socket)).toBe('pass');
    listener.close();
    expect(await level(path.join(at.dir, 'gone'))).toBe('pass');
    writeFileSync(path.join(at.dir, 'file'), '');
    expect(await level(path.join(at.dir, 'file'))).toBe('fail');
    symlinkSync('/nowhere', path.join(runtime, 'notifier-1.lock'));
    expect((await examined(at)).row('store-permissions').level).toBe('fail');
  });
});

describe('the version of Claude Code', () => {
  /** As its own installer leaves it, and as a package of npm. */
  const installed = {
    natively: (version: string) => path.join(at.dir, '.local', 'share', 'claude', 'versions', version),
    'by npm': (version: string) => {
      const folder = path.join(at.dir, 'node_modules', '@anthropic-ai', 'claude-code');
      json(path.join(folder, 'package.json'), { name: '@anthropic-ai/claude-code', version });
      return path.join(folder, 'bin', 'claude.exe');
    },
  };
  const put = (how: keyof typeof installed, version: string): void => {
    const file = installed[how](version);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, '#!/bin/sh\necho "$*" >> "$HOME/claude.argv"\n', { mode: 0o755 });
    rmSync(path.join(at.bin, 'claude'));
    symlinkSync(file, path.join(at.bin, 'claude'));
  };

  it.each(['natively', 'by npm'] as const)(
    '[HOST-010] installed %s: one that is not the tested one is used, with a note; below the floor it is a concern',
    async (how) => {
      put(how, '2.1.332');
      expect((await examined(at)).row('mcp').level).toBe('pass');
      for (const [version, age] of [
        ['2.1.400', 'another'],
        ['2.1.210', 'older'],
      ] as const) {
        put(how, version);
        const { verdict, row } = await examined(at);
        const text = `Claude Code ${version} is ${age} than the 2.1.332 that was tested; it is used, and what it lacks is found by trying`;
        expect([verdict, row('mcp')]).toMatchObject(['PASS', { level: 'info', text }]);
      }
      put(how, '2.1.100');
      const { verdict, row } = await examined(at);
      expect([verdict, row('mcp')]).toMatchObject([
        'PASS_WITH_CONCERNS',
        {
          level: 'warn',
          text: 'Claude Code 2.1.100 has no hooks that wake a session (they came with 2.1.197)',
          hint: 'install Claude Code 2.1.332 or newer',
        },
      ]);
      expect(existsSync(path.join(at.dir, 'claude.argv'))).toBe(false);
    },
  );
});

describe('a fresh home', () => {
  it('is sound before anything was stored, with or without Claude Code, and gets nothing made in it', async () => {
    const fresh = await makeInstallation({ store: false });
    for (const claude of [true, false]) {
      if (!claude) rmSync(fresh.claude, { recursive: true });
      if (!claude) rmSync(path.join(fresh.bin, 'claude'));
      const before = snapshot(fresh.dir);
      const { code, verdict, rows } = await examined(fresh);
      expect([code, verdict, rows.filter(({ level }) => level === 'warn')]).toEqual([0, 'PASS', []]);
      expect(changes(before, snapshot(fresh.dir))).toEqual([]);
    }
    expect(existsSync(fresh.data)).toBe(false);
    await fresh.end();
  });
});

describe('a broken installation', () => {
  it.each(brokenInstallations)('$fault: the row $row says so', async (broken) => {
    broken.make?.(at);
    const more = broken.env?.(at) ?? {};
    const before = snapshot(at.dir);
    const report = await examined(at, more);
    const row = report.row(broken.row);
    expect(row).toMatchObject({
      level: broken.level,
      text: expect.stringMatching(broken.says),
      hint: expect.stringMatching(broken.remedy),
    });
    expect(`${row.text}${row.hint}`).not.toContain('\n');
    expect([report.verdict, report.code]).toEqual(
      report.rows.some(({ level }) => level === 'fail') ? ['FAIL', 1] : ['PASS_WITH_CONCERNS', 0],
    );
    expect(changes(before, snapshot(at.dir))).toEqual([]);
    const { hint, ...rest } = row;
    told.push({
      fault: broken.fault,
      row: { ...rest, text: placeless(row.text), ...(hint !== undefined && { hint: placeless(hint) }) },
    });
    expect(faultTable(told).split('\n')).toHaveLength(told.length + 2);
  });

  it('without the SQLite driver the other rows are looked at all the same', async () => {
    const copy = path.join(at.dir, 'copy');
    cpSync(path.join(root, 'dist'), path.join(copy, 'dist'), { recursive: true });
    const words = [path.join(copy, 'dist', 'postbell.cjs'), 'doctor'];
    let stdout = '';
    try {
      execFileSync(process.execPath, words, { env: at.env, cwd: at.project, encoding: 'utf8' });
    } catch (error) {
      stdout = (error as { stdout: string }).stdout;
    }
    expect(stdout).toMatch(
      /^fail {2}node +the SQLite driver cannot be loaded \(MODULE_NOT_FOUND\) {2}\u2192 npm rebuild/m,
    );
    expect(stdout).toMatch(/^warn {2}store +could not look/m);
    expect(stdout).toMatch(/^pass {2}hosts-config/m);
  });

  it('[SES-069] a socket path that is too long leaves mail alone, and error and doctor name the remedy', async () => {
    const more = { POSTBELL_ROUTER_SOCKET: path.join(at.dir, 'x'.repeat(103)) };
    const env = { ...at.env, ...more };
    expect((await postbell(env, at.project, ['send', 'bob'], 'x')).stdout).toMatch(/^Stored msg_/);
    expect((await postbell(env, at.project, ['router'])).stderr).toMatch(
      /^postbell: socket_path_too_long: .*set POSTBELL_ROUTER_SOCKET to a shorter absolute path/,
    );
    expect((await examined(at, more)).row('router-socket').hint).toMatch(
      /POSTBELL_ROUTER_SOCKET.*shorter home/,
    );
  });
});

describe('[SES-130] a row that could not look', () => {
  it.each([
    ['install', '.claude/plugins/installed_plugins.json'],
    ['store', 'data/postbell.db'],
    ['store-permissions', 'data/runtime'],
    ['mcp', '.claude/settings.json'],
    ['hooks', '.claude/settings.json'],
    ['hook-activity', 'data/hook-outcomes.jsonl'],
    ['router-socket', 'data'],
    ['router-version', 'data'],
    ['sessions', 'data/postbell.db'],
    ['message-storage', 'data/postbell.db'],
    ['scope', 'data/postbell.db'],
    ['claude-channel', '.claude.json'],
    ['hosts-config', 'data/hosts'],
    ['listener', 'data/postbell.db'],
  ])('%s, of %s, says so and is no pass', async (id, closed) => {
    const file = path.join(at.dir, closed);
    if (closed === 'data/hosts') mkdirSync(file);
    if (!existsSync(file)) writeFileSync(file, '{}', { mode: 0o600 });
    chmodSync(file, 0);
    // From the plugin's own folder, so that the row of the channel looks.
    const cwd = path.join(root, 'plugins', 'claude-code');
    const row = (await examined(at, {}, { plain: true, cwd })).row(id);
    chmodSync(file, 0o700);
    expect(['warn', 'fail']).toContain(row.level);
    expect(row.text).toMatch(/could not look|cannot be (?:looked at|read|written)/);
  });

  it('a shell that does not answer', async () => {
    const { row } = await examined(at, { SHELL: '/bin/false' });
    expect(row('shell-cli')).toMatchObject({ level: 'warn', text: expect.stringMatching(/^could not look/) });
  });

  it('a shell that never answers, and that no signal but the last ends', async () => {
    const shell = path.join(at.dir, 'deaf');
    writeFileSync(shell, '#!/bin/sh\ntrap "" TERM\nexec sleep 60\n', { mode: 0o755 });
    const began = Date.now();
    const { row } = await examined(at, { SHELL: shell });
    expect(row('shell-cli').text).toBe(`could not look: ${shell} does not say within 5 s`);
    expect(Date.now() - began).toBeLessThan(20_000);
  }, 70_000);
});

describe('with a router and sessions', () => {
  it('names sessions that cannot be rung, and which router runs, and leaves both as they are', async () => {
    at.start(['router']);
    const sent = await answer(at.env, at.project, ['send', 'nobody', '--json'], 'x');
    const sound = await openSession(at, { CLAUDE_CODE_SESSION_ID: 's1' });
    await openSession(at);
    await liveCards(at, sent.project as string, 2);
    const before = await answer(at.env, at.project, ['router', 'status']);
    const { row, code } = await examined(at);
    expect(code).toBe(0);
    expect(row('router-version')).toMatchObject({ level: 'pass' });
    expect(row('router-socket')).toMatchObject({ level: 'pass' });
    expect(row('sessions').text).toBe('2 live, 1 of them without a bell; 0 expired in 24 h');
    expect(row('listener')).toMatchObject({
      level: 'warn',
      text: expect.stringMatching(/^an id that no hook can find, so that nothing rings: "[0-9a-f]{16}"$/),
      hint: expect.stringContaining('POSTBELL_SESSION'),
    });
    const after = await answer(at.env, at.project, ['router', 'status']);
    expect([after.pid, after.live_connections]).toEqual([before.pid, before.live_connections]);
    await sound.close();
  });

  it('a store that a killed process left is read as it is, and not carried on', async () => {
    const router = at.start(['router']);
    await until('the router runs', () => existsSync(path.join(at.data, 'router-v1.sock')));
    await answer(at.env, at.project, ['send', 'bob', '--json'], 'x');
    router.child.kill('SIGKILL');
    await router.exited;
    expect(existsSync(path.join(at.data, 'postbell.db-wal'))).toBe(true);
    const before = snapshot(at.dir);
    const { row } = await examined(at);
    expect(row('store').level).toBe('pass');
    expect(row('message-storage').text).toMatch(/^payloads take 3 B/);
    expect(row('router-version')).toMatchObject({
      level: 'warn',
      text: expect.stringMatching(/^could not look: router_unreachable: /),
    });
    // The index of the WAL holds the marks of its readers.
    expect(changes(before, snapshot(at.dir)).filter((name) => !name.endsWith('-shm'))).toEqual([]);
  });
});

describe('[SES-138] --fix', () => {
  const plugin = () => [`plugin marketplace add ${root}`, 'plugin install postbell@postbell'];

  it('without a terminal and without --yes says what it would do, and does nothing', async () => {
    rmSync(path.join(at.claude, 'plugins'), { recursive: true });
    const before = snapshot(at.dir);
    const { code, stdout, stderr } = await shown(['--fix']);
    expect(code).toBe(1);
    expect(stdout).toContain('PASS_WITH_CONCERNS');
    expect(stderr).toMatch(
      /would run \S+claude plugin marketplace add [^\n]*\nwould run [^\n]*\npostbell: usage: [^\n]*--yes/,
    );
    expect(changes(before, snapshot(at.dir))).toEqual([]);
  });

  it('wires the host by the host\u2019s own commands, and touches none of its files', async () => {
    rmSync(path.join(at.claude, 'plugins'), { recursive: true });
    writeFileSync(path.join(at.claude, 'settings.json'), '{ "model": "opus" }');
    const before = snapshot(at.dir);
    const { code, stderr } = await shown(['--fix', '--yes']);
    expect(code).toBe(0);
    expect(stderr.trim().split('\n')).toHaveLength(2);
    expect(changes(before, snapshot(at.dir))).toEqual(['claude.argv']);
    expect(readFileSync(path.join(at.dir, 'claude.argv'), 'utf8').trim().split('\n')).toEqual(plugin());
  });

  it('a command of the host that fails is shown with what it said, and nothing is run after it', async () => {
    rmSync(path.join(at.claude, 'plugins'), { recursive: true });
    writeFileSync(path.join(at.bin, 'claude'), '#!/bin/sh\necho "no such market" >&2\nexit 3\n', {
      mode: 0o755,
    });
    const { code, stdout, stderr } = await shown(['--fix', '--yes']);
    expect([code, stdout.includes('PASS_WITH_CONCERNS')]).toEqual([1, true]);
    expect(stderr).toMatch(/^run [^\n]*\nrun [^\n]*: ended with 3: no such market\n$/);
  });

  it('leaves a plugin that a person switched off, and settings that it cannot read', async () => {
    const settings = path.join(at.claude, 'settings.json');
    for (const text of ['{"enabledPlugins":{"postbell@postbell":false}}', '{"enabledPlugins": ']) {
      writeFileSync(settings, text);
      const before = snapshot(at.dir);
      expect((await shown(['--fix', '--yes'])).stderr).toBe('');
      expect(changes(before, snapshot(at.dir))).toEqual([]);
    }
  });

  it('shows a marketplace that moved where the plugin lies now', async () => {
    installPlugin(at, path.join(at.dir, 'gone'));
    await shown(['--fix', '--yes']);
    expect(readFileSync(path.join(at.dir, 'claude.argv'), 'utf8').trim()).toBe(plugin()[0]);
  });

  it('makes the directories that are missing, and nothing in them', async () => {
    rmSync(at.data, { recursive: true });
    const before = snapshot(at.dir);
    const { code, stderr } = await shown(['--fix', '--yes']);
    expect(code).toBe(0);
    expect(stderr).toBe(`make the directory ${at.data}\nmake the directory ${at.data}/runtime\n`);
    const after = snapshot(at.dir);
    expect(changes(before, after)).toEqual(
      ['data', 'data/runtime', ...[...before.keys()].filter((name) => name.startsWith('data/'))].filter(
        (name) => after.get(name) !== before.get(name),
      ),
    );
    expect([after.get('data'), after.get('data/runtime')]).toEqual(['700', '700']);
  });

  it('removes what a dead process left half written; a lock, and what a live one writes, stay', async () => {
    mkdirSync(path.join(at.data, 'stop-gate'), { mode: 0o700 });
    const dead = ['.router.token.4194304', 'hook-outcomes.jsonl.4194304', 'stop-gate/.s1.json.4194304'];
    const live = path.join(at.data, `.router.token.${process.pid}`);
    const lock = path.join(at.data, 'runtime', 'listener-x.lock');
    const kept = [live, lock, path.join(at.data, 'hook-outcomes.jsonl.1')];
    for (const file of [...dead.map((name) => path.join(at.data, name)), ...kept])
      writeFileSync(file, '', { mode: 0o600 });
    const before = snapshot(at.dir);
    const { stderr } = await shown(['--fix', '--yes']);
    expect(stderr).toBe(
      dead.map((name) => `remove ${at.data}/${name}, half written by a process that is dead\n`).join(''),
    );
    expect(changes(before, snapshot(at.dir))).toEqual(dead.map((name) => `data/${name}`));
  });

  it('at a terminal asks before each step', async () => {
    rmSync(path.join(at.claude, 'plugins'), { recursive: true });
    rmSync(path.join(at.data, 'runtime'), { recursive: true });
    const terminal = openTerminal(at);
    at.atEnd(() => terminal.end());
    terminal.type('postbell doctor --fix');
    await until('the first question', () => /make the directory/.test(terminal.screen().replace(/\n/g, '')));
    expect(existsSync(path.join(at.data, 'runtime'))).toBe(false);
    terminal.type('y');
    await until('the second question', () => /marketplace add/.test(terminal.screen().replace(/\n/g, '')));
    expect(existsSync(path.join(at.data, 'runtime'))).toBe(true);
    terminal.type('n');
    await until('the third question', () => /plugin install/.test(terminal.screen().replace(/\n/g, '')));
    terminal.type('n');
    await until('the verdict', () => terminal.screen().includes('PASS_WITH_CONCERNS'));
    expect(existsSync(path.join(at.dir, 'claude.argv'))).toBe(false);
  });
});
