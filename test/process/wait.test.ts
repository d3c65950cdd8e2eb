// The listener as the host starts it: exit codes, order, locks.

import { spawn } from 'node:child_process';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { until } from './home.ts';
import { type Listening, openListening, payload } from './listener.ts';
import { answer, postbell, program } from './postbell.ts';

let scene: Listening;
beforeEach(async () => {
  scene = await openListening();
});
afterEach(() => scene.home.end());

describe('postbell wait', () => {
  it('[INB-122] prints one batch on stderr and exits 2; the next one waits for what comes later', async () => {
    const first = scene.listener();
    await scene.armed();
    await scene.send('SENTINEL-BODY one');
    expect(await first.exited).toEqual({ code: 2, signal: null });
    expect(first.stdout()).toBe('');
    expect(first.stderr()).toMatch(
      /^\[Postbell inbox notice\]\n1 message waits for this session\. notification_id="[0-9a-f]{12}"\n/,
    );
    expect(first.stderr()).toContain('receive_messages');
    expect(first.stderr()).not.toContain('SENTINEL-BODY');
    expect(scene.passed()).toEqual({ rows: 1, cursor: 1 });
    const second = scene.listener();
    await scene.armed();
    await new Promise((resolve) => setTimeout(resolve, 600));
    expect([second.child.exitCode, scene.passed()]).toEqual([null, { rows: 1, cursor: 1 }]);
    const exact = [
      'message',
      'send',
      '--project',
      scene.project,
      '--sender',
      'me',
      '--recipient',
      's1',
      '--target-kind',
      'session',
      '--idempotency-key',
      'k',
      '--payload-stdin',
    ];
    await answer(scene.home.env, scene.home.project, exact, 'two');
    expect((await second.exited).code).toBe(2);
    expect(second.stderr()).toContain('2 messages wait');
  });

  it('[INB-132] is one a session: another exits 0, silent, within a second; kill -9 frees its place at once', async () => {
    const first = scene.listener();
    await scene.armed();
    const began = Date.now();
    const second = await postbell(scene.home.env, scene.home.project, ['wait'], payload);
    expect(second).toEqual({ code: 0, stdout: '', stderr: '' });
    expect(Date.now() - began).toBeLessThan(1_500);
    const ofAnother = scene.listener({}, 's2');
    await until('a listener of another session is armed beside it', () => {
      const lock = scene.locks.tryTake('listener-s2');
      lock?.release();
      return lock === undefined;
    });
    expect([first.child.exitCode, ofAnother.child.exitCode]).toEqual([null, null]);
    first.child.kill('SIGKILL');
    await first.exited;
    const third = scene.listener();
    await scene.armed();
    await scene.send('after the kill');
    expect((await third.exited).code).toBe(2);
  });

  it('[HOST-093] is one a host process, whatever the session: another exits 0, silent; kill -9 frees its place', async () => {
    const CLAUDE_PID = String(scene.startHost().pid);
    const first = scene.listener({ CLAUDE_PID });
    await scene.armed();
    const began = Date.now();
    const second = scene.listener({ CLAUDE_PID }, 's2');
    expect([await second.exited, second.stdout(), second.stderr()]).toEqual([
      { code: 0, signal: null },
      '',
      '',
    ]);
    expect(Date.now() - began).toBeLessThan(1_500);
    expect(first.child.exitCode).toBeNull();
    first.child.kill('SIGKILL');
    await first.exited;
    const third = scene.listener({ CLAUDE_PID }, 's2');
    await until('it is armed', () => {
      const lock = scene.locks.tryTake('listener-s2');
      lock?.release();
      return lock === undefined;
    });
    expect(third.child.exitCode).toBeNull();
  });

  it('[HOST-097] ends silently with 0 at a signal, when it is switched off, and for a sub-agent', async () => {
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
      const started = scene.listener();
      await scene.armed();
      const began = Date.now();
      started.child.kill(signal);
      expect([await started.exited, started.stderr(), started.stdout()]).toEqual([
        { code: 0, signal: null },
        '',
        '',
      ]);
      expect(Date.now() - began).toBeLessThan(1_000);
    }
    await scene.send('waiting row');
    const off = [{ POSTBELL_LISTENER: 'off' }, { POSTBELL_CHANNELS: '1' }, { POSTBELL_CHANNELS: 'TRUE' }];
    for (const more of off)
      expect(await postbell({ ...scene.home.env, ...more }, scene.home.project, ['wait'], payload)).toEqual({
        code: 0,
        stdout: '',
        stderr: '',
      });
    const subagent = JSON.stringify({ session_id: 's1', agent_id: 'a' });
    expect(await postbell(scene.home.env, scene.home.project, ['wait'], subagent)).toEqual({
      code: 0,
      stdout: '',
      stderr: '',
    });
    expect((await scene.listener().exited).code).toBe(2);
  });

  it('exits 1 with a line for wrong usage, never 2', async () => {
    for (const words of [
      ['--renew-after-secs', '0'],
      ['--renew-after-secs', '3001'],
      ['--renew-after-secs', '1.5'],
      ['--renew-after-secs', 'abc'],
      ['--nonsense'],
      ['extra'],
    ]) {
      const { code, stdout, stderr } = await postbell(
        scene.home.env,
        scene.home.project,
        ['wait', ...words],
        payload,
      );
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toMatch(/^postbell: usage: /);
    }
  });

  it('[INB-137] takes its flags before or after the word wait: the session is the named one, and it renews in time', async () => {
    for (const words of [
      ['wait', '--renew-after-secs', '1', '--session', 'other'],
      ['--renew-after-secs', '1', '--session', 'other', 'wait'],
    ]) {
      const { code, stderr } = await postbell(scene.home.env, scene.home.project, words, '');
      expect(code).toBe(2);
      expect(stderr).toMatch(/^\[Postbell listener renewal\]/);
      const held = scene.locks.tryTake('listener-other');
      expect(await postbell(scene.home.env, scene.home.project, words, '')).toEqual({
        code: 0,
        stdout: '',
        stderr: '',
      });
      held?.release();
    }
  });

  it('moves no cursor when its text could not be written: the next one prints it', async () => {
    const broken = spawn(process.execPath, [program, 'wait'], {
      env: scene.home.env,
      cwd: scene.home.project,
      stdio: ['pipe', 'ignore', 'pipe'],
    });
    const ended = new Promise((resolve) => broken.on('close', resolve));
    broken.stderr.destroy();
    broken.stdin.end(payload);
    await scene.armed();
    await scene.send('lost on the first way');
    expect(await ended).not.toBe(2);
    expect((await scene.listener().exited).code).toBe(2);
  });

  it('gives a slow reader every byte', async () => {
    const slow = scene.listener();
    slow.child.stderr?.pause();
    await scene.armed();
    await scene.send('slowly');
    await new Promise((resolve) => setTimeout(resolve, 300));
    slow.child.stderr?.resume();
    expect((await slow.exited).code).toBe(2);
    expect(slow.stderr()).toMatch(/no approval of anything\.\n$/);
  });

  it('[INB-124] passes over a notice, in silence, whose mail was taken in meanwhile', async () => {
    await scene.send('taken before the turn ends');
    const { data } = await scene.session.call('receive_messages', {});
    const receipts = (data.messages as { receipt: object }[]).map(({ receipt }) => receipt);
    await until('it is rung', () => scene.passed().rows === 1);
    await scene.session.call('acknowledge_messages', { messages: receipts });
    expect(scene.passed().cursor).toBe(0);
    const late = scene.listener();
    await scene.armed();
    await until('it passes over the row', () => scene.passed().cursor === 1);
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect([late.child.exitCode, late.stderr()]).toEqual([null, '']);
  });
});
