// How `postbell host acp` ends: whatever ends it, its agent and all that the agent started end with it.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { isAlive } from '../../src/platform/processes.ts';
import { type AcpHome, acpHome } from './acp-runner.ts';
import { until } from './home.ts';
import { type Env, root } from './postbell.ts';
import { ask } from './router-line.ts';

let acp: AcpHome;
beforeEach(async () => {
  acp = await acpHome();
});
afterEach(async () => {
  for (const pid of pids().filter(isAlive)) process.kill(pid, 'SIGKILL');
  await acp.home.end();
});

const pids = (): number[] => [...acp.log('started'), ...acp.log('child')].map(({ pid }) => pid as number);
const living = (): number[] => pids().filter(isAlive);
const notLive = () => until('it is not live', async () => (await acp.cards()).length === 0);
const replacedLine = 'replaced by a newer connection for this session; stopping.\n';

/** What it closes refuses to be closed. */
const cannotClose = (): Env => {
  const script = path.join(acp.home.dir, 'cannot-close.cjs');
  const lines = [
    "const fs = require('node:fs');",
    'const { watch } = fs;',
    "const close = () => { throw new Error('not now'); };",
    "if (process.argv.includes('host')) fs.watch = (...of) => Object.assign(watch(...of), { close });",
  ];
  writeFileSync(script, lines.join('\n'));
  return { NODE_OPTIONS: `--require ${script}` };
};
const closeFailed = 'postbell: internal_error: an unexpected failure in Postbell (Error) (report it)\n';

describe('the end of an ACP session', () => {
  it.each([
    ['SIGKILL', 'was ended by SIGKILL'],
    ['SIGTERM', 'was ended by SIGTERM'],
  ] as const)('of which the agent got %s: the cause, exit 1, not live', async (signal, cause) => {
    const runner = await acp.running();
    process.kill(acp.log('started')[0]?.pid as number, signal);
    expect(await runner.exited).toEqual({ code: 1, signal: null });
    expect(runner.stderr()).toContain(`postbell: the agent ${cause}; this session ends\n`);
    await notLive();
    expect(living()).toEqual([]);
  });

  it('[HOST-212] by a failure is its cause and exit 1, also where a signal comes after it, or nothing was started', async () => {
    const runner = await acp.running();
    acp.turn('die');
    await acp.send();
    await until('it says so', () => runner.stderr().includes('this session ends'));
    runner.child.kill('SIGTERM');
    expect(await runner.exited).toEqual({ code: 1, signal: null });
    expect(runner.stderr()).toContain('postbell: the agent ended with exit code 7; this session ends\n');
    await notLive();
    acp.configure({ command: ['no-such-agent'] });
    const missing = acp.run();
    expect(await missing.exited).toEqual({ code: 1, signal: null });
    expect(missing.stderr()).toBe(
      'postbell: the agent cannot be started (ENOENT: "no-such-agent"); this session ends\n',
    );
    expect(living()).toEqual([]);
  });

  it('[HOST-273] AC4: the agent dies before, during and after a prompt, cannot be started, or the close fails', async () => {
    acp.script({ die: 'initialize' });
    const before = acp.run();
    expect((await before.exited).code).toBe(1);
    expect(before.stderr()).toBe('postbell: the agent ended with exit code 7; this session ends\n');
    acp.script({});
    const during = await acp.running();
    acp.turn('die');
    await acp.send();
    expect((await during.exited).code).toBe(1);
    expect(during.stderr()).toContain('the agent ended with exit code 7');
    acp.turn('read');
    const after = await acp.running();
    await acp.happened('stop');
    process.kill(acp.log('started').at(-1)?.pid as number, 'SIGKILL');
    expect((await after.exited).code).toBe(1);
    expect(after.stderr()).toContain('the agent was ended by SIGKILL');
    const closing = await acp.running(cannotClose());
    closing.child.kill('SIGTERM');
    expect((await closing.exited).code).toBe(1);
    expect(closing.stderr().endsWith(closeFailed)).toBe(true);
    acp.configure({ command: [path.join(acp.home.dir, 'none')] });
    const spawned = acp.run();
    expect((await spawned.exited).code).toBe(1);
    expect(spawned.stderr()).toContain('cannot be started (ENOENT: "/');
    expect(living()).toEqual([]);
  });

  it.each(['SIGINT', 'SIGTERM'] as const)(
    '[HOST-213] by %s is no failure: exit 0, no line; one whose close fails says why and exits 1',
    async (signal) => {
      const runner = await acp.running();
      const before = runner.stderr();
      runner.child.kill(signal);
      expect(await runner.exited).toEqual({ code: 0, signal: null });
      expect(runner.stderr()).toBe(before);
      const broken = await acp.running(cannotClose());
      const said = broken.stderr();
      broken.child.kill(signal);
      expect((await broken.exited).code).toBe(1);
      expect(broken.stderr()).toBe(`${said}${closeFailed}`);
      expect(living()).toEqual([]);
    },
  );

  it.each(['SIGINT', 'SIGTERM'] as const)(
    '[HOST-213] by %s before anything is started is no failure, and leaves nothing',
    async (signal) => {
      execFileSync('git', ['init', '-q', acp.home.project]);
      const bin = path.join(acp.home.dir, 'slow-bin');
      mkdirSync(bin);
      const asked = path.join(bin, 'asked');
      writeFileSync(path.join(bin, 'git'), `#!/bin/sh\necho > ${asked}\nexec sleep 5\n`, { mode: 0o755 });
      const runtime = path.join(acp.home.env.POSTBELL_HOME as string, 'runtime');
      const before = readdirSync(runtime);
      const runner = acp.run({ PATH: `${bin}:${process.env.PATH}` });
      await until('git is asked for the project', () => existsSync(asked));
      runner.child.kill(signal);
      expect(await runner.exited).toEqual({ code: 0, signal: null });
      expect([runner.stderr(), acp.log(), readdirSync(runtime)]).toEqual(['', [], before]);
    },
  );

  it('by a signal while it starts ends the agent too', async () => {
    acp.script({ ignoresServers: true });
    const runner = acp.run();
    await acp.happened('session/new');
    runner.child.kill('SIGTERM');
    expect(await runner.exited).toEqual({ code: 0, signal: null });
    expect([living(), await acp.cards()]).toEqual([[], []]);
  });

  it('[HOST-214] because it was replaced is its line and exit 0', async () => {
    const runner = await acp.running();
    const before = runner.stderr();
    const { version: postbell_version } = JSON.parse(
      readFileSync(path.join(root, 'package.json'), 'utf8'),
    ) as { version: string };
    const frame = { type: 'register', project: acp.project, principal_id: 'builder', host_kind: 'other' };
    const kind = { session_id: runner.session, adapter_kind: 'acp', bell: 'acp', postbell_version };
    const answered = await ask(acp.home.env.POSTBELL_HOME as string, { ...frame, ...kind });
    expect(answered.error).toBeUndefined();
    expect(await runner.exited).toEqual({ code: 0, signal: null });
    expect(runner.stderr()).toBe(`${before}${replacedLine}`);
    expect(living()).toEqual([]);
  });

  it('[HOST-272] AC3: in mid-turn cancels the prompt, exits 0 and leaves no child', async () => {
    const runner = await acp.running();
    acp.turn('hold');
    await acp.send();
    await acp.happened('prompt');
    runner.child.kill('SIGTERM');
    expect(await runner.exited).toEqual({ code: 0, signal: null });
    expect(acp.log('cancelled')).toHaveLength(1);
    expect(living()).toEqual([]);
    await notLive();
  });

  it('[HOST-215] ends an agent that will not end, and children that ignore signals, the harder the longer it takes', async () => {
    acp.script({ stubborn: true });
    const runner = await acp.running();
    acp.turn('hold');
    await acp.send();
    await acp.happened('prompt');
    expect(living()).toHaveLength(2);
    const began = Date.now();
    runner.child.kill('SIGTERM');
    expect(await runner.exited).toEqual({ code: 0, signal: null });
    const at = (event: string): number => (acp.log(event)[0]?.at as number) - began;
    const steps = ['cancel', 'input ended', 'SIGTERM'];
    expect(acp.log().flatMap(({ event }) => (steps.includes(event) ? [event] : []))).toEqual(steps);
    // Its children, too, are asked before they are killed.
    expect(acp.log('SIGTERM of the child')).toHaveLength(1);
    expect(at('input ended')).toBeLessThan(1_500);
    expect(at('SIGTERM')).toBeGreaterThan(1_900);
    expect(at('SIGTERM')).toBeLessThan(4_000);
    const tookMs = Date.now() - began;
    expect(tookMs).toBeGreaterThan(5_000);
    expect(tookMs).toBeLessThan(8_000);
    expect(living()).toEqual([]);
  });

  it('by kill -9 ends the agent and its children all the same, however stubborn', async () => {
    acp.script({ stubborn: true });
    const runner = await acp.running();
    expect(living()).toHaveLength(2);
    process.kill(runner.pid, 'SIGKILL');
    await until('its agent has ended', () => living().length === 0);
    await notLive();
  });
});
