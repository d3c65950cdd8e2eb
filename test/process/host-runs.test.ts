// The command that runs real hosts, where there are none: it skips them and says why, and what it never shows.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { hosts } from '../../tools/hosts.mjs';
import { type Home, makeHome } from './home.ts';
import { finished, root } from './postbell.ts';

let home: Home;
beforeEach(() => {
  home = makeHome();
});
afterEach(() => home.end());

const vitest = path.join(root, 'node_modules', 'vitest', 'vitest.mjs');
/** In the source tree, with nothing in the cache of hosts but what a test put there. */
const run = async (words: string[], more: Record<string, string> = {}) => {
  const env = { ...home.env, XDG_CACHE_HOME: path.join(home.dir, 'cache'), NO_COLOR: '1', ...more };
  const all = [vitest, ...words, '--config', 'vitest.hosts.config.ts'];
  const { code, stdout, stderr } = await finished(process.execPath, all, env, root);
  return { code, said: stdout + stderr };
};

describe('[HOST-232] runs of real hosts', () => {
  it('[INB-161, HOST-235] without them each is skipped with its reason, and the report names what it does not cover', async () => {
    // What needs a host; the scripted agent of ACP is always there.
    const needing = [
      'claude-code',
      'codex',
      'acp',
      'truth/claude',
      'truth/codex',
      'truth/managed',
      'cross-host',
    ];
    const { code, said } = await run(['run', ...needing.map((part) => `test/hosts/${part}`)]);
    expect(code).toBe(0);
    const lines = said.split('\n').filter((line) => line.startsWith('skipped: '));
    const whole =
      /^skipped: (?:Claude Code|[\w-]+) (\d+\.\d+\.\d+): .+: ([\w-]+) \1 is not installed \(run `node tools\/hosts\.mjs \2`\)$/;
    expect(lines.length).toBeGreaterThan(15);
    for (const line of lines) expect(line).toMatch(whole);
    for (const host of ['claude-code', 'codex']) expect(said).toContain(`node tools/hosts.mjs ${host}`);
    const [, passed, skipped] = /Tests +(?:(\d+) passed \| )?(\d+) skipped \(/.exec(said) ?? [];
    expect([passed, Number(skipped) > 80]).toEqual([undefined, true]);
    const report = said.slice(said.indexOf('What these runs do not cover:'));
    for (const topic of [
      'admission of channels by the vendor',
      'reviews hooks, but for the one scenario',
      'interactive review',
      'production models',
      'Desktop and cloud products',
      'macOS and Windows',
    ])
      expect(report).toContain(topic);
  }, 60_000);

  it('in CI a host that is missing fails, and none is skipped in silence', async () => {
    const files = {
      codex: 'test/hosts/codex/plugin.test.ts',
      claude: 'test/hosts/claude-code/install.test.ts',
    };
    const { code, said } = await run(['run', ...Object.values(files)], { CI: '1' });
    expect(code).toBe(1);
    expect(said).toContain(`FAIL  ${files.codex} > codex 0.171.0: plugin and trust can run`);
    expect(said).toMatch(new RegExp(`FAIL  ${files.claude} > Claude Code 2\\.1\\.332: .* can run`));
  }, 60_000);

  it('with them every line names host and version', async () => {
    for (const [name, { versions, program }] of Object.entries(hosts))
      for (const version of versions) {
        const dir = path.join(home.dir, 'cache', 'postbell-hosts', `${name}-${version}`, 'node_modules');
        const file = path.join(dir, program[0] as string);
        mkdirSync(path.dirname(file), { recursive: true });
        writeFileSync(file, '');
      }
    const { code, said } = await run(['list']);
    const lines = said.split('\n').filter((line) => line.startsWith('test/hosts/'));
    expect([code, lines.length > 80]).toEqual([0, true]);
    for (const line of lines)
      expect(line).toMatch(/^test\/hosts\/\S+ > (?:Claude Code|[\w-]+) \d+\.\d+\.\d+: /);
  }, 60_000);

  it('install exact versions once, into a cache outside of the tree', async () => {
    const bin = path.join(home.dir, 'bin');
    mkdirSync(bin);
    const asked = path.join(home.dir, 'npm.log');
    const npm = `#!${process.execPath}
const { appendFileSync, mkdirSync, writeFileSync } = require('node:fs');
const words = process.argv.slice(2);
appendFileSync(${JSON.stringify(asked)}, words.join(' ') + '\\n');
const to = words[words.indexOf('--prefix') + 1] + '/node_modules/.bin';
mkdirSync(to, { recursive: true });
writeFileSync(to + '/gemini', '#!/bin/sh\\necho ' + words.at(-1).split('@').at(-1), { mode: 0o755 });
`;
    writeFileSync(path.join(bin, 'npm'), npm, { mode: 0o755 });
    const cache = path.join(home.dir, 'cache');
    const env = { ...home.env, XDG_CACHE_HOME: cache, PATH: `${bin}:${home.env.PATH}` };
    const [version] = hosts['gemini-cli'].versions;
    for (const _ of [1, 2]) {
      const words = [path.join(root, 'tools', 'hosts.mjs'), 'gemini-cli'];
      const { code, stdout } = await finished(process.execPath, words, env, home.project);
      const file = path.join(
        cache,
        'postbell-hosts',
        `gemini-cli-${version}`,
        'node_modules',
        '.bin',
        'gemini',
      );
      expect([code, stdout]).toEqual([0, `gemini-cli ${version} ${file}\n`]);
    }
    expect(readFileSync(asked, 'utf8').trim().split('\n')).toEqual([
      expect.stringMatching(new RegExp(`@google/gemini-cli@${version}$`)),
    ]);
  });
});
