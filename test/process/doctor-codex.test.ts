// `postbell doctor` over an installation of Codex: sound, fresh, and broken in one way each; and what `--fix` does there.

import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { brokenCodex } from './codex-faults.ts';
import {
  askDoctor,
  type CodexInstallation,
  copiedPackage,
  examinedCodex,
  makeCodexInstallation,
  pluginVersion,
  say,
} from './codex-installation.ts';
import { faultTable } from './faults.ts';
import { changes, type Row, snapshot } from './installation.ts';

const copy = copiedPackage();
afterAll(() => copy.end());
let at: CodexInstallation;
beforeEach(async () => {
  at = await makeCodexInstallation(copy.directory);
});
afterEach(() => at.end());

/** What doctor said of each, for docs/doctor.md where DOCTOR_TABLE names it. */
const told: { fault: string; row: Row }[] = [];
const placeless = (text: string): string =>
  text.replaceAll(at.package, '/path/to/postbell').replaceAll(at.dir, '~');
afterAll(() => {
  const file = process.env.DOCTOR_TABLE;
  if (file === undefined) return;
  const page = readFileSync(file, 'utf8').replace(
    /(<!-- faults of Codex -->)[\s\S]*(<!-- end of faults of Codex -->)/,
    (_, begin: string, end: string) => [begin, faultTable(told), end].join('\n\n'),
  );
  writeFileSync(file, page);
});

/** Homes that were made to ask Codex in. */
const asking = (): string[] => readdirSync(at.dir).filter((name) => name.startsWith('postbell-codex-'));

describe('a sound installation of Codex', () => {
  it('passes, and neither Codex\u2019s home nor anything else changes', async () => {
    const before = snapshot(at.dir);
    const report = await examinedCodex(at, { TMPDIR: at.dir });
    expect([report.verdict, report.code, report.stderr]).toEqual(['PASS', 0, '']);
    expect(report.row('mcp').text).toMatch(/; Codex: registered by the plugin postbell@postbell$/);
    expect(report.row('hooks').text).toMatch(
      /; Codex: the hooks of the plugin are whole, as shipped, and trusted$/,
    );
    expect(report.row('codex-queue-release').level).toBe('pass');
    expect([changes(before, snapshot(at.dir)), asking()]).toEqual([[], []]);
  });

  it('is found by CODEX_HOME, too, and alone, where Claude Code is not installed', async () => {
    rmSync(at.claude, { recursive: true });
    rmSync(path.join(at.bin, 'claude'));
    const alone = await examinedCodex(at);
    expect([alone.verdict, alone.row('mcp').text]).toEqual([
      'PASS',
      'Codex: registered by the plugin postbell@postbell',
    ]);
    const elsewhere = path.join(at.dir, 'elsewhere');
    const moved = await examinedCodex(at, { CODEX_HOME: elsewhere });
    expect(moved.row('mcp')).toMatchObject({ level: 'warn', text: 'Codex knows no MCP server of Postbell' });
    rmSync(at.codex, { recursive: true });
    rmSync(path.join(at.bin, 'codex'));
    const none = await examinedCodex(at);
    expect([none.verdict, none.row('mcp'), none.row('hooks').level]).toEqual([
      'PASS',
      { id: 'mcp', level: 'info', text: 'neither Claude Code nor Codex is installed for this account' },
      'info',
    ]);
  });

  it.each(['0.160.2', '0.172.0', '1.0.0-rc.1'])(
    '[HOST-010] version %s is used, with a note',
    async (version) => {
      say(at, { version });
      const { verdict, row } = await examinedCodex(at);
      expect([verdict, row('hooks').level]).toEqual(['PASS', 'pass']);
      expect(row('mcp')).toMatchObject({
        level: 'info',
        text: expect.stringMatching(
          new RegExp(`^Codex ${version} is (older|another) than the 0\\.171\\.0 that was tested;`),
        ),
      });
    },
  );
});

describe('a broken installation of Codex', () => {
  it.each(brokenCodex)('$fault: the row $row says so', async (broken) => {
    broken.make?.(at);
    const before = snapshot(at.dir);
    const report = await examinedCodex(at, { TMPDIR: at.dir, ...broken.env?.(at) });
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
    expect([changes(before, snapshot(at.dir)), asking()]).toEqual([[], []]);
    const { hint, ...rest } = row;
    told.push({
      fault: broken.fault,
      row: { ...rest, text: placeless(row.text), ...(hint !== undefined && { hint: placeless(hint) }) },
    });
  });

  it('a Codex that says nothing is ended after its time, and the row says so', async () => {
    say(at, { how: 'is silent' });
    const report = await examinedCodex(at, { TMPDIR: at.dir });
    expect(report.row('hooks')).toMatchObject({
      level: 'warn',
      text: 'could not look: which hooks are trusted: codex app-server does not answer within 10 s',
    });
    expect(asking()).toEqual([]);
  }, 40_000);

  it('settings and copies that are closed to this account are said to be', async () => {
    for (const [name, id] of [
      ['.codex/config.toml', 'mcp'],
      ['.codex/config.toml', 'install'],
      ['.codex/config.toml', 'hooks'],
      ['.codex/plugins/cache/postbell/postbell', 'mcp'],
      [`.codex/plugins/cache/postbell/postbell/${pluginVersion}/hooks/hooks.json`, 'hooks'],
    ] as const) {
      chmodSync(path.join(at.dir, name), 0);
      const row = (await examinedCodex(at, {}, { plain: true })).row(id);
      chmodSync(path.join(at.dir, name), 0o700);
      expect([name, id, row.level, row.text]).toEqual([
        name,
        id,
        'warn',
        expect.stringContaining('could not look'),
      ]);
    }
  }, 40_000);
});

describe('--fix and Codex', () => {
  const argv = (): string[] => {
    const file = path.join(at.dir, 'codex.argv');
    return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
  };
  const broken = (fault: string) => brokenCodex.find((one) => one.fault === fault)?.make?.(at);

  it('wires it by its own commands, and touches none of its files', async () => {
    broken('the plugin is not installed in Codex');
    const before = snapshot(at.dir);
    const { code, stderr } = await askDoctor(at, ['--fix', '--yes']);
    expect(code).toBe(0);
    expect(stderr.trim().split('\n')).toHaveLength(2);
    expect(changes(before, snapshot(at.dir))).toEqual(['codex.argv']);
    expect(argv()).toEqual([`plugin marketplace add ${at.package}`, 'plugin add postbell@postbell']);
  });

  it('adds the plugin again where Codex lost its copy, and asks for nothing where all is there', async () => {
    await askDoctor(at, ['--fix', '--yes']);
    expect(argv()).toEqual([]);
    broken('Codex lost its copy of the plugin');
    await askDoctor(at, ['--fix', '--yes']);
    expect(argv()).toEqual(['plugin add postbell@postbell']);
  });

  it('leaves what a person chose, what it cannot read, and trust', async () => {
    for (const fault of [
      'the MCP server was registered alone in Codex',
      'the settings of Codex are no TOML',
    ]) {
      broken(fault);
      const before = snapshot(at.dir);
      expect((await askDoctor(at, ['--fix', '--yes'])).stderr).toBe('');
      expect(changes(before, snapshot(at.dir))).toEqual([]);
    }
    for (const fault of [
      'the plugin is switched off in Codex',
      'nobody has reviewed the hooks in Codex',
      'the hooks changed since they were reviewed in Codex',
    ]) {
      const other = at;
      at = await makeCodexInstallation(copy.directory);
      await other.end();
      broken(fault);
      const before = snapshot(at.dir);
      expect((await askDoctor(at, ['--fix', '--yes'])).stderr).toBe('');
      expect(changes(before, snapshot(at.dir))).toEqual([]);
    }
  });
});
