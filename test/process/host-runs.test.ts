// The command that runs real hosts, where there are none: it skips them and says why, and what it never shows.

import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
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

it('[INB-161, HOST-235] without them each is skipped with its reason, and the report names what it does not cover', async () => {
  const { code, said } = await run(['run']);
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
  const { code, said } = await run(['run', 'test/hosts/codex/doctor.test.ts', 'test/hosts/harness.test.ts'], {
    CI: '1',
  });
  expect(code).toBe(1);
  for (const title of ['codex 0.171.0: doctor can run', 'Claude Code 2.1.332: Claude Code harness can run'])
    expect(said).toContain(
      `FAIL  test/hosts/${title.startsWith('codex') ? 'codex/doctor' : 'harness'}.test.ts > ${title}`,
    );
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
