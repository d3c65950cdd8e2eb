// The listener as the host starts it: exit codes, order, locks, and the host it watches. Rows are made by the real
// bell: an MCP session and a router.

import { spawn } from 'node:child_process';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { locksIn } from '../../src/store/lock.ts';
import { type Home, makeHome, until } from './home.ts';
import { alive, answer, postbell, program } from './postbell.ts';
import { liveCards, openSession, type Session } from './session.ts';

let home: Home;
let session: Session;
let project: string;

const payload = JSON.stringify({ session_id: 's1', hook_event_name: 'Stop' });

beforeEach(async () => {
  home = makeHome();
  home.start(['router']);
  project = (await answer(home.env, home.project, ['send', 'nobody', '--json'], 'x')).project as string;
  session = await openSession(home, { CLAUDE_CODE_SESSION_ID: 's1', POSTBELL_RECIPIENT: 'alice' });
  await liveCards(home, project, 1);
});

afterEach(async () => {
  await session.close();
  await home.end();
});

function listener(more = {}, words: string[] = []) {
  const started = home.start(['wait', ...words], more);
  started.child.stdin?.end(payload);
  return started;
}

const send = (body: string) => answer(home.env, home.project, ['send', 'alice', '--json'], body);

/** A listener holds the session's lock. */
function armed(): Promise<void> {
  const locks = locksIn(path.join(home.env.POSTBELL_HOME as string, 'runtime'));
  return until('a listener is armed', () => {
    const lock = locks.tryTake('listener-s1');
    lock?.release();
    return lock === undefined;
  });
}

describe('postbell wait', () => {
  it('[INB-122] prints one batch on stderr and exits 2; the next one waits for what comes later', async () => {
    const first = listener();
    await armed();
    await send('SENTINEL-BODY one');
    expect(await first.exited).toEqual({ code: 2, signal: null });
    expect(first.stdout()).toBe('');
    expect(first.stderr()).toMatch(
      /^\[Postbell inbox notice\]\n1 message waits for this session\. notification_id="[0-9a-f]{12}"\n/,
    );
    expect(first.stderr()).toContain('receive_messages');
    expect(first.stderr()).not.toContain('SENTINEL-BODY');
    const second = listener();
    await new Promise((resolve) => setTimeout(resolve, 600));
    expect(second.child.exitCode).toBeNull();
    const exact = [
      'message',
      'send',
      '--project',
      project,
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
    await answer(home.env, home.project, exact, 'two');
    expect((await second.exited).code).toBe(2);
    expect(second.stderr()).toContain('2 messages wait');
  });

  it('[INB-132] is one a session: another exits 0, silent, within a second; kill -9 frees its place at once', async () => {
    const first = listener();
    await armed();
    const began = Date.now();
    const second = await postbell(home.env, home.project, ['wait'], payload);
    expect(second).toEqual({ code: 0, stdout: '', stderr: '' });
    expect(Date.now() - began).toBeLessThan(1_500);
    first.child.kill('SIGKILL');
    await first.exited;
    const third = listener();
    await armed();
    await send('after the kill');
    expect((await third.exited).code).toBe(2);
  });

  it('ends silently with 0 at a signal, when it is switched off, and for a sub-agent', async () => {
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
      const started = listener();
      await armed();
      started.child.kill(signal);
      expect([await started.exited, started.stderr(), started.stdout()]).toEqual([
        { code: 0, signal: null },
        '',
        '',
      ]);
    }
    await send('waiting row');
    const off = [{ POSTBELL_LISTENER: 'off' }, { POSTBELL_CHANNELS: '1' }, { POSTBELL_CHANNELS: 'TRUE' }];
    for (const more of off)
      expect(await postbell({ ...home.env, ...more }, home.project, ['wait'], payload)).toEqual({
        code: 0,
        stdout: '',
        stderr: '',
      });
    const subagent = JSON.stringify({ session_id: 's1', agent_id: 'a' });
    expect(await postbell(home.env, home.project, ['wait'], subagent)).toEqual({
      code: 0,
      stdout: '',
      stderr: '',
    });
    expect((await listener().exited).code).toBe(2);
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
      const { code, stdout, stderr } = await postbell(home.env, home.project, ['wait', ...words], payload);
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toMatch(/^postbell: usage: /);
    }
  });

  it('[INB-137] takes its flags before or after the word wait, and renews with a text that names no message', async () => {
    for (const words of [
      ['wait', '--renew-after-secs', '1', '--session', 'other'],
      ['--renew-after-secs', '1', '--session', 'other', 'wait'],
    ]) {
      const { code, stderr } = await postbell(home.env, home.project, words, '');
      expect(code).toBe(2);
      expect(stderr).toMatch(/^\[Postbell listener renewal\]/);
    }
  });

  it('moves no cursor when its text could not be written: the next one prints it', async () => {
    const broken = spawn(process.execPath, [program, 'wait'], {
      env: home.env,
      cwd: home.project,
      stdio: ['pipe', 'ignore', 'pipe'],
    });
    const ended = new Promise((resolve) => broken.on('close', resolve));
    broken.stderr.destroy();
    broken.stdin.end(payload);
    await armed();
    await send('lost on the first way');
    expect(await ended).not.toBe(2);
    expect((await listener().exited).code).toBe(2);
  });

  it('gives a slow reader every byte', async () => {
    const slow = listener();
    slow.child.stderr?.pause();
    await armed();
    await send('slowly');
    await new Promise((resolve) => setTimeout(resolve, 300));
    slow.child.stderr?.resume();
    expect((await slow.exited).code).toBe(2);
    expect(slow.stderr()).toMatch(/no approval of anything\.\n$/);
  });

  it('passes over a notice whose mail was taken in meanwhile', async () => {
    await send('taken before the turn ends');
    const { data } = await session.call('receive_messages', {});
    const receipts = (data.messages as { receipt: object }[]).map(({ receipt }) => receipt);
    await session.call('acknowledge_messages', { messages: receipts });
    const late = listener();
    await new Promise((resolve) => setTimeout(resolve, 800));
    expect(late.child.exitCode).toBeNull();
  });

  it('[HOST-097] watches its host: kill -9 of it ends the listener within 5 s', async () => {
    const host = spawn('sleep', ['600']);
    const watched = listener({ CLAUDE_PID: String(host.pid) });
    await armed();
    expect(watched.child.exitCode).toBeNull();
    host.kill('SIGKILL');
    const began = Date.now();
    expect((await watched.exited).code).toBe(0);
    expect(Date.now() - began).toBeLessThan(5_000);
    expect(alive(watched.pid)).toBe(false);
  });

  it('lets a host that took over the session arm its own listener though the old host died just now', async () => {
    const [old, young] = [spawn('sleep', ['600']), spawn('sleep', ['600'])];
    const left = listener({ CLAUDE_PID: String(old.pid) });
    await armed();
    old.kill('SIGKILL');
    const taken = listener({ CLAUDE_PID: String(young.pid) });
    expect((await left.exited).code).toBe(0);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect(taken.child.exitCode).toBeNull();
    await send('to the resumed one');
    expect((await taken.exited).code).toBe(2);
    young.kill();
  });

  it('leaves at once where nobody is attending and the host reads one prompt only', async () => {
    const host = spawn('sleep', ['600']);
    const env = { ...home.env, CLAUDE_CODE_SESSION_ATTENDED: '0', CLAUDE_PID: String(host.pid) };
    await send('a row waits');
    expect(await postbell(env, home.project, ['wait'], payload)).toEqual({ code: 0, stdout: '', stderr: '' });
    host.kill();
  });
});
