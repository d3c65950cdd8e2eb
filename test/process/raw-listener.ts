// A session without a server: rows are appended by hand, and its listeners run as a host starts them.

import path from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { openReservation } from '../../src/mailbox/reserve.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { fileWake } from '../../src/platform/wake.ts';
import type { Locks } from '../../src/ports/lock.ts';
import type { Store } from '../../src/ports/store.ts';
import { locksIn } from '../../src/store/lock.ts';
import { openStore } from '../../src/store/open.ts';
import { posted } from '../contract/desk.ts';
import { type Home, makeHome, type Started, until } from './home.ts';
import { answer, type Env } from './postbell.ts';

export interface Raw {
  home: Home;
  data: string;
  locks: Locks;
  /** Rows of any table, by plain SQL. */
  rows(sql: string): Record<string, unknown>[];
  /** Rows a table holds. */
  counts(): Record<string, number>;
  cursor(): number;
  /** A notice that covers a letter of its own. @returns the letter's id */
  notice(text: string, session?: string): Promise<string>;
  /** A row of an earlier format: printed whatever waits. */
  whole(text: string, session?: string): Promise<void>;
  touch(): void;
  listener(words?: string[], more?: Env, input?: string): Started;
  armed(session?: string): Promise<void>;
}

export async function openRaw(): Promise<Raw> {
  const home = makeHome();
  const data = home.env.POSTBELL_HOME as string;
  const file = path.join(data, 'postbell.db');
  await answer(home.env, home.project, ['send', 'nobody', '--json'], 'x');
  const locks = locksIn(path.join(data, 'runtime'));
  const wake = fileWake(path.join(data, 'runtime', 'mail'));
  const ports = { clock: systemClock, random: systemRandom };
  const within = async <T>(work: (store: Store) => Promise<T>): Promise<T> => {
    const store = await openStore({ path: file, ...ports });
    return work(store).finally(() => store.close());
  };
  const rows: Raw['rows'] = (sql) => {
    const reader = new BetterSqlite3(file, { readonly: true });
    const found = reader.prepare(sql).all() as Record<string, unknown>[];
    reader.close();
    return found;
  };
  const append = (text: string, session_id: string, notification_id: string, store: Store) =>
    store.write((tx) =>
      tx.listener.append({ session_id, notification_id, text, created_at: '2026-01-01T00:00:00.000Z' }),
    );
  let whole = 0;
  return {
    home,
    data,
    locks,
    rows,
    counts: () =>
      Object.fromEntries(
        rows(`SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`).map(
          ({ name }) => [String(name), Number(rows(`SELECT count(*) AS n FROM "${String(name)}"`)[0]?.n)],
        ),
      ),
    cursor: () => Number(rows('SELECT max(position) AS n FROM listener_cursor')[0]?.n ?? 0),
    notice: (text, session = 's1') =>
      within(async (store) => {
        const router = { notify: async () => ({ delivered: false }), discover: async () => [] };
        const desk = { store, ...ports, wake: { touch: () => {}, watch: () => () => {} }, router };
        const { delivery_id, message_id } = await posted(desk);
        const id = await store.write((tx) => openReservation(tx, desk, session, [delivery_id]));
        await append(text, session, id, store);
        return message_id;
      }),
    whole: (text, session = 's1') =>
      within((store) => {
        whole += 1;
        return append(text, session, `earlier-${whole}`, store);
      }),
    touch: () => wake.touch(),
    listener: (words = [], more = {}, input = JSON.stringify({ session_id: 's1' })) => {
      const started = home.start(['wait', ...words], more);
      started.child.stdin?.end(input);
      return started;
    },
    armed: (session = 's1') =>
      until('a listener is armed', () => {
        const lock = locks.tryTake(`listener-${session}`);
        lock?.release();
        return lock === undefined;
      }),
  };
}
