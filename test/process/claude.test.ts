// `postbell claude`, with a recording program in the place of Claude Code.

import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Home, makeHome, until } from './home.ts';
import { alive, type Env, postbell } from './postbell.ts';

let home: Home;
let bin: string;
beforeEach(() => {
  home = makeHome();
  bin = path.join(home.dir, 'bin');
  mkdirSync(bin);
});
afterEach(() => home.end());

const record = (): string => path.join(home.dir, 'record');
const recorded = () =>
  JSON.parse(readFileSync(record(), 'utf8')) as { argv: string[]; env: Env; pid: number; input: string };

/** Writes down how it was started, and then does what the scene says. */
function fakeClaude(then: string): void {
  const script = [
    `#!${process.execPath}`,
    "const { writeFileSync, readFileSync } = require('node:fs');",
    'const [, , ...argv] = process.argv;',
    "const input = process.env.READS === '1' ? readFileSync(0, 'utf8') : '';",
    `writeFileSync(${JSON.stringify(record())}, JSON.stringify({ argv, env: process.env, pid: process.pid, input }));`,
    then,
  ];
  writeFileSync(path.join(bin, 'claude'), script.join('\n'), { mode: 0o755 });
}

const withKey = (): Env => {
  const key = path.join(home.dir, 'key');
  writeFileSync(key, 'x\n');
  return { ...home.env, PATH: `${bin}:${process.env.PATH}`, POSTBELL_KEY: key };
};
const flags = ['--dangerously-load-development-channels', 'plugin:postbell@postbell'];

describe('postbell claude', () => {
  it('[HOST-108] starts Claude Code with its channels on, its own words and terminal, and ends as it does', async () => {
    fakeClaude("console.log('out'); console.error('err'); process.exit(7);");
    const words = ['--resume', 'a b', '--help', '--json', '-p', ''];
    const env: Env = { ...withKey(), READS: '1', POSTBELL_RECIPIENT: 'reviewer' };
    const ended = await postbell(env, home.project, ['claude', ...words], 'typed');
    expect(ended).toEqual({ code: 7, stdout: 'out\n', stderr: 'err\n' });
    const { argv, env: seen, input } = recorded();
    expect([argv, input]).toEqual([[...flags, ...words], 'typed']);
    expect(seen).toMatchObject({ ...env, POSTBELL_CHANNELS: '1' });

    // Without the key file it warns, where that would lie, and starts it all the same.
    const { POSTBELL_KEY: _, ...keyless } = env;
    const config = path.join(home.dir, 'config');
    for (const [more, key] of [
      [{}, path.join(home.dir, '.config', 'postbell', 'identity.key')],
      [{ XDG_CONFIG_HOME: config }, path.join(config, 'postbell', 'identity.key')],
      [{ XDG_CONFIG_HOME: 'relative' }, path.join(home.dir, '.config', 'postbell', 'identity.key')],
      [{ POSTBELL_KEY: '/no/such/key' }, '/no/such/key'],
    ] as const) {
      const warned = await postbell({ ...keyless, ...more }, home.project, ['claude']);
      expect([warned.code, warned.stderr.split('\n')]).toEqual([
        7,
        [expect.stringMatching(/^postbell: there is no identity key at /), 'err', ''],
      ]);
      expect(warned.stderr).toContain(`${key};`);
    }
    mkdirSync(path.join(config, 'postbell'), { recursive: true });
    writeFileSync(path.join(config, 'postbell', 'identity.key'), 'x\n');
    const there = await postbell({ ...keyless, XDG_CONFIG_HOME: config }, home.project, ['claude']);
    expect(there.stderr).toBe('err\n');

    const none = { ...withKey(), PATH: path.join(home.dir, 'nowhere') };
    const missing = await postbell(none, home.project, ['claude']);
    expect([missing.code, missing.stdout]).toEqual([127, '']);
    expect(missing.stderr).toMatch(/^postbell: claude cannot be started \(ENOENT\)[^\n]*\n$/);
    chmodSync(path.join(bin, 'claude'), 0o644);
    const closed = await postbell({ ...none, PATH: bin }, home.project, ['claude']);
    expect([closed.code, closed.stderr]).toEqual([
      127,
      expect.stringContaining('cannot be started (EACCES)'),
    ]);
  });

  it.each(['SIGTERM', 'SIGHUP', 'SIGINT'] as const)(
    'hands %s on, and ends as Claude Code does',
    async (signal) => {
      fakeClaude(`process.on('${signal}', () => process.exit(5)); setInterval(() => {}, 1000);`);
      const started = home.start(['claude'], withKey());
      await until('it runs', () => started.child.exitCode !== null || isRecorded());
      await new Promise((resolve) => setTimeout(resolve, 100));
      started.child.kill(signal);
      expect(await started.exited).toEqual({ code: 5, signal: null });
      expect(alive(recorded().pid)).toBe(false);
    },
  );

  it('dies of the signal that Claude Code died of', async () => {
    fakeClaude("process.kill(process.pid, 'SIGKILL');");
    const started = home.start(['claude'], withKey());
    expect(await started.exited).toEqual({ code: null, signal: 'SIGKILL' });
  });
});

const isRecorded = (): boolean => {
  try {
    return recorded().pid > 0;
  } catch {
    return false;
  }
};
