// One home with everything that Postbell runs, each process killed with -9 when its turn comes, and what must hold whatever
// was killed: answered sends are there, acknowledged mail never comes back, a notice comes at most twice.

import path from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { acknowledge } from '../../src/mailbox/acknowledge.ts';
import type { Caller } from '../../src/mailbox/desk.ts';
import { type ReceiveAnswer, receive } from '../../src/mailbox/receive.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { fileWake } from '../../src/platform/wake.ts';
import { openStore } from '../../src/store/open.ts';
import { ok } from '../contract/desk.ts';
import { makeHome, type Started, until } from '../process/home.ts';
import { type Env, type Finished, postbell } from '../process/postbell.ts';

/** What a message was on its way to when its process was killed. */
export type Hop = 'send' | 'dispatch' | 'ring' | 'print' | 'receive' | 'acknowledge' | 'none';

export interface Facts {
  /** Messages whose send was answered, by id. */
  answered: Set<string>;
  /** Messages whose acknowledgement was answered. */
  acknowledged: Set<string>;
  /** How often each notice was printed. */
  printed: Map<string, number>;
  /** What must not be: each with what was seen. */
  broken: string[];
}

export const newFacts = (): Facts => ({
  answered: new Set(),
  acknowledged: new Set(),
  printed: new Map(),
  broken: [],
});

const project = 'kills';

/** One session with its server and its listener. */
export interface Desk {
  name: string;
  env: Env;
  server: Started;
  listener: Started;
}

export type Office = Awaited<ReturnType<typeof openOffice>>;

export async function openOffice() {
  const home = makeHome();
  const data = home.env.POSTBELL_HOME as string;
  const facts = newFacts();
  home.start(['router']);
  await until('the router answers', async () => (await run(['router', 'status'])).code === 0);
  const file = path.join(data, 'postbell.db');
  const reader = new BetterSqlite3(file, { readonly: true });
  const holder = new BetterSqlite3(file, { timeout: 2_000 });
  const store = await openStore({ path: file, clock: systemClock, random: systemRandom });
  home.atEnd(() => {
    for (const one of [reader, holder, store]) one.close();
  });
  const none = { notify: () => Promise.reject(new Error('none')), discover: async () => [] };
  const wake = fileWake(path.join(data, 'runtime', 'mail'));

  function run(words: string[], input = ''): Promise<Finished> {
    return postbell(home.env, home.project, words, input);
  }

  const envOf = (name: string): Env => ({
    CLAUDE_CODE_SESSION_ID: name,
    POSTBELL_RECIPIENT: `reader-${name}`,
    CLAUDE_PROJECT_DIR: home.project,
    CLAUDE_CODE_SESSION_ATTENDED: '1',
  });

  const startServer = (name: string): Started => {
    const server = home.start(['mcp'], envOf(name));
    const say = (message: object) =>
      server.child.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
    say({
      id: 1,
      method: 'initialize',
      params: {
        protocolVersion: '2025-11-25',
        capabilities: {},
        clientInfo: { name: 'kills', version: '1' },
      },
    });
    say({ method: 'notifications/initialized' });
    return server;
  };

  /** Arms the listener; what it prints is counted when it ends. */
  const startListener = (name: string): Started => {
    const listener = home.start(['wait'], envOf(name));
    listener.child.stdin?.end(JSON.stringify({ session_id: name }));
    void listener.exited.then(() => {
      for (const [, id] of listener.stderr().matchAll(/notification_id="([0-9a-f]+)"/g))
        facts.printed.set(String(id), (facts.printed.get(String(id)) ?? 0) + 1);
    });
    return listener;
  };

  let lastHold: Promise<void> = Promise.resolve();
  return {
    home,
    facts,
    reader,
    run,
    /** The use cases over the same store, as a process that is not killed. */
    desk: { store, clock: systemClock, random: systemRandom, wake, router: none },
    /** Nobody else writes while `work` runs: whatever is in flight stays there. One at a time. */
    hold: (work: () => Promise<void>): Promise<void> => {
      const mine = lastHold.then(async () => {
        holder.exec('BEGIN IMMEDIATE');
        try {
          await work();
        } finally {
          holder.exec('ROLLBACK');
        }
      });
      lastHold = mine.catch(() => {});
      return mine;
    },
    /** The router that runs now; sessions start another one where it has died. */
    routerPid: () =>
      reader.prepare('SELECT pid FROM router_run ORDER BY seq DESC LIMIT 1').pluck().get() as number,
    openDesk: (name: string): Desk => ({
      name,
      env: envOf(name),
      server: startServer(name),
      listener: startListener(name),
    }),
    project: projectOf,
    startServer,
    startListener,
    sendWords: (name: string, key: string): string[] => [
      'message',
      'send',
      '--project',
      projectOf(),
      '--sender',
      'writer',
      '--recipient',
      `reader-${name}`,
      '--idempotency-key',
      key,
      '--payload-stdin',
    ],
    inboxWords: (verb: 'receive' | 'acknowledge', name: string): string[] => [
      'inbox',
      verb,
      '--project',
      projectOf(),
      '--recipient',
      `reader-${name}`,
    ],
  };

  /** The project that the sessions register in. */
  function projectOf(): string {
    const row = reader.prepare('SELECT project FROM session LIMIT 1').get() as
      | { project: string }
      | undefined;
    return row?.project ?? project;
  }
}

/** Where the newest message of the session stands, by the facts of the store alone. */
export function hopOf({ reader }: Office, name: string): Hop {
  const row = reader
    .prepare(
      `SELECT d.delivery_id, d.open,
         (SELECT a.state FROM attempt a WHERE a.delivery_id = d.delivery_id ORDER BY a.seq DESC LIMIT 1) AS attempt,
         (SELECT n.state FROM reservation_cover v JOIN reservation n USING (notification_id)
          WHERE v.delivery_id = d.delivery_id ORDER BY n.seq DESC LIMIT 1) AS notice,
         (SELECT max(l.seq) FROM reservation_cover v JOIN listener_row l USING (notification_id)
          WHERE v.delivery_id = d.delivery_id) AS line,
         (SELECT position FROM listener_cursor WHERE session_root = ?) AS cursor
       FROM delivery d WHERE d.recipient = ? ORDER BY d.seq DESC LIMIT 1`,
    )
    .get(name, `reader-${name}`) as
    | {
        open: number;
        attempt: string | null;
        notice: string | null;
        line: number | null;
        cursor: number | null;
      }
    | undefined;
  if (row === undefined || row.open === 0) return 'none';
  if (row.line !== null) return (row.cursor ?? 0) < row.line ? 'print' : 'none';
  if (row.attempt === 'started' || row.notice === 'preparing') return 'ring';
  return row.attempt === null && row.notice === null ? 'dispatch' : 'none';
}

const readerOf = (name: string): Caller => ({
  transport: 'mcp',
  source_host: 'kills',
  session: name,
  principal: `reader-${name}`,
});

/** Reads the inbox whole. Nothing that was acknowledged may be in it. */
export function readInbox(office: Office, name: string): ReceiveAnswer['messages'] {
  const { desk, facts } = office;
  const { messages } = ok(receive(desk, { project: office.project(), limit: 100 }, readerOf(name)));
  for (const { message_id } of messages)
    if (facts.acknowledged.has(message_id)) facts.broken.push(`acknowledged and back: ${message_id}`);
  return messages;
}

/** Acknowledges all that waits, and remembers that it was answered. */
export async function clearInbox(office: Office, name: string): Promise<void> {
  const { desk, facts } = office;
  for (let mail = readInbox(office, name); mail.length > 0; mail = readInbox(office, name)) {
    const messages = mail.map(({ receipt }) => receipt);
    ok(await acknowledge(desk, { project: office.project(), messages }, readerOf(name)));
    for (const { message_id } of mail) facts.acknowledged.add(message_id);
  }
}
