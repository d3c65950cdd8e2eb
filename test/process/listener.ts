// A session of alice that can be rung, and listeners of it as the host starts them. Rows are made by the real bell: an
// MCP session and a router.

import { type ChildProcess, spawn } from 'node:child_process';
import path from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import type { Locks } from '../../src/ports/lock.ts';
import { locksIn } from '../../src/store/lock.ts';
import { type Home, makeHome, type Started, until } from './home.ts';
import { answer, type Env } from './postbell.ts';
import { liveCards, openSession, type Session } from './session.ts';

/** What the host gives its listener on stdin. */
const payloadOf = (session_id: string) => JSON.stringify({ session_id, hook_event_name: 'Stop' });
export const payload = payloadOf('s1');

export interface Listening {
  home: Home;
  session: Session;
  project: string;
  locks: Locks;
  /** Starts a listener, of s1 unless another is named. */
  listener(more?: Env, sessionId?: string): Started;
  /** Sends to alice. */
  send(body: string): Promise<unknown>;
  /** Resolves once a listener holds the lock of s1. */
  armed(): Promise<void>;
  /** Listener rows that there are, and the last that a listener passed. */
  passed(): { rows: number; cursor: number };
  /** A stand-in for the host: it does nothing, and dies with the home. */
  startHost(argv0?: string): ChildProcess;
}

export async function openListening(): Promise<Listening> {
  const home = makeHome();
  const data = home.env.POSTBELL_HOME as string;
  const locks = locksIn(path.join(data, 'runtime'));
  home.start(['router']);
  const sent = await answer(home.env, home.project, ['send', 'nobody', '--json'], 'x');
  const project = sent.project as string;
  const session = await openSession(home, { CLAUDE_CODE_SESSION_ID: 's1', POSTBELL_RECIPIENT: 'alice' });
  await liveCards(home, project, 1);
  return {
    home,
    session,
    project,
    locks,
    listener: (more = {}, sessionId = 's1') => {
      const started = home.start(['wait'], more);
      started.child.stdin?.end(payloadOf(sessionId));
      return started;
    },
    send: (body) => answer(home.env, home.project, ['send', 'alice', '--json'], body),
    armed: () =>
      until('a listener is armed', () => {
        const lock = locks.tryTake('listener-s1');
        lock?.release();
        return lock === undefined;
      }),
    passed: () => {
      const store = new BetterSqlite3(path.join(data, 'postbell.db'), { readonly: true });
      const first = (sql: string) => (store.prepare(sql).get() as { n: number | null }).n ?? 0;
      const found = {
        rows: first('SELECT count(*) AS n FROM listener_row'),
        cursor: first('SELECT max(position) AS n FROM listener_cursor'),
      };
      store.close();
      return found;
    },
    startHost: (argv0 = 'sleep') => {
      const host = spawn('sleep', ['600'], { argv0 });
      home.atEnd(() => host.kill('SIGKILL'));
      return host;
    },
  };
}
