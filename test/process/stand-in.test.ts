// A session whose server died, restarts, or never was: the listener rings where nobody else does.

import path from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { until } from './home.ts';
import { type Listening, openListening } from './listener.ts';
import { answer, postbell } from './postbell.ts';
import { openSession } from './session.ts';

let scene: Listening;
beforeEach(async () => {
  scene = await openListening();
});
afterEach(() => scene.home.end());

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const serverRuns = (): boolean => {
  const lock = scene.locks.tryTake('notifier-s1');
  lock?.release();
  return lock === undefined;
};
const reservations = (): number => {
  const store = new BetterSqlite3(path.join(scene.home.env.POSTBELL_HOME as string, 'postbell.db'), {
    readonly: true,
  });
  const { n } = store.prepare('SELECT count(*) AS n FROM reservation').get() as { n: number };
  store.close();
  return n;
};

describe('a listener whose server was killed', () => {
  it('[HOST-104] takes the notifier lock that was free for 2 s, and rings: the session wakes', async () => {
    await until('the server holds its lock', serverRuns);
    const armed = scene.listener();
    await scene.armed();
    process.kill(scene.session.pid, 'SIGKILL');
    const killedAt = Date.now();
    await until('the lock is free', () => !serverRuns());
    await scene.send('to a session with hooks alone');
    expect((await armed.exited).code).toBe(2);
    expect(Date.now() - killedAt).toBeGreaterThanOrEqual(2_000);
    expect(Date.now() - killedAt).toBeLessThan(8_000);
    expect(armed.stderr()).toContain('1 message waits');
    expect(scene.passed()).toEqual({ rows: 1, cursor: 1 });
    expect(reservations()).toBe(1);
    const again = scene.listener();
    await scene.armed();
    await pause(4_000);
    expect([again.child.exitCode, scene.passed().rows, reservations()]).toEqual([null, 1, 1]);
  });

  it('[HOST-104] lets the hook link the ids of a /clear first: no second ring before the reservation ends', async () => {
    const { home } = scene;
    const host = scene.startHost();
    const env = { ...home.env, CLAUDE_PID: String(host.pid), POSTBELL_RECIPIENT: 'alice' };
    const hook = (session_id: string, source: string) =>
      postbell(
        env,
        home.project,
        ['hook', 'session-start', '--host', 'claude'],
        JSON.stringify({ session_id, source }),
      );
    expect((await hook('s1', 'startup')).code).toBe(0);
    await scene.send('rung for just now');
    expect((await scene.listener().exited).code).toBe(2);
    expect([scene.passed(), reservations()]).toEqual([{ rows: 1, cursor: 1 }, 1]);
    process.kill(scene.session.pid, 'SIGKILL');
    const young = home.start(['wait'], { ...env, POSTBELL_CHANNELS: '' });
    young.child.stdin?.end(JSON.stringify({ session_id: 's2' }));
    await until('it is armed', () => {
      const lock = scene.locks.tryTake('listener-s2');
      lock?.release();
      return lock === undefined;
    });
    await pause(1_000);
    expect((await hook('s2', 'clear')).code).toBe(0);
    await pause(6_000);
    expect([young.child.exitCode, young.stderr()]).toEqual([null, '']);
    expect([scene.passed().rows, reservations()]).toEqual([1, 1]);
  });

  it('leaves the lock to a server that comes', async () => {
    process.kill(scene.session.pid, 'SIGKILL');
    scene.listener();
    await scene.armed();
    await pause(4_000);
    await openSession(scene.home, { CLAUDE_CODE_SESSION_ID: 's1', POSTBELL_RECIPIENT: 'alice' });
    await until('the server has it', serverRuns, 5_000);
    await pause(1_000);
    expect(serverRuns()).toBe(true);
  });
});

describe('a listener of an unattended host', () => {
  it('leaves within 2 s after the server it had seen, and does not stand in for it', async () => {
    await until('the server holds its lock', serverRuns);
    const host = scene.startHost('claude --input-format stream-json');
    const more = { CLAUDE_CODE_SESSION_ATTENDED: '0', CLAUDE_PID: String(host.pid) };
    const armed = scene.listener(more);
    await scene.armed();
    await pause(2_500);
    await scene.session.close();
    await until('the lock is free', () => !serverRuns());
    const freeAt = Date.now();
    expect([(await armed.exited).code, armed.stderr()]).toEqual([0, '']);
    expect(Date.now() - freeAt).toBeLessThan(2_000);
  });

  it('leaves also where the server had gone before it could be seen', async () => {
    await until('the server holds its lock', serverRuns);
    await scene.session.close();
    await until('the lock is free', () => !serverRuns());
    const host = scene.startHost('claude --input-format stream-json');
    const startedAt = Date.now();
    const late = scene.listener({ CLAUDE_CODE_SESSION_ATTENDED: '0', CLAUDE_PID: String(host.pid) });
    expect([(await late.exited).code, late.stderr()]).toEqual([0, '']);
    expect(Date.now() - startedAt).toBeLessThan(5_000);
  });

  it('stays where no server ever was', async () => {
    const host = scene.startHost('claude --input-format stream-json');
    const more = { CLAUDE_CODE_SESSION_ATTENDED: '0', CLAUDE_PID: String(host.pid) };
    const alone = scene.listener(more, 'alone');
    await pause(5_000);
    expect(alone.child.exitCode).toBe(null);
  });
});

describe('a server that starts', () => {
  it('[INB-128] preserves unread listener rows and the cursor: unread before, printed after', async () => {
    const first = scene.listener();
    await scene.armed();
    await scene.send('printed before');
    expect((await first.exited).code).toBe(2);
    const exact = ['message', 'send', '--project', scene.project, '--sender', 'me', '--recipient', 's1'];
    const rest = ['--target-kind', 'session', '--idempotency-key', 'k', '--payload-stdin'];
    await answer(scene.home.env, scene.home.project, [...exact, ...rest], 'unread');
    expect(scene.passed()).toEqual({ rows: 2, cursor: 1 });
    await scene.session.close();
    await until('the server is gone', () => !serverRuns());
    await openSession(scene.home, { CLAUDE_CODE_SESSION_ID: 's1', POSTBELL_RECIPIENT: 'alice' });
    await until('another runs', serverRuns);
    expect(scene.passed()).toEqual({ rows: 2, cursor: 1 });
    const next = scene.listener();
    expect((await next.exited).code).toBe(2);
    expect(next.stderr()).toContain('2 messages wait');
    expect(scene.passed()).toEqual({ rows: 2, cursor: 2 });
  });
});
