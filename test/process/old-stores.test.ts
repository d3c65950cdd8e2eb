// Stores of older releases: what they answered is what today's release answers, with fields added at most, and what was
// written before a rule stays as it was. The literals are the answers of the last release of each schema to the same rows.

import { copyFileSync, statSync } from 'node:fs';
import path from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Home, makeHome } from './home.ts';
import { examined } from './installation.ts';
import { fillOldStore, ids, insertMail, makeOldStore, olderSchemas, project } from './old-store.ts';
import { answer, postbell } from './postbell.ts';

let home: Home;
beforeEach(() => {
  home = makeHome();
});
afterEach(() => home.end());

const data = () => home.env.POSTBELL_HOME as string;
const ask = (...words: string[]) => answer(home.env, home.project, words);
const scope = ['--project', project, '--recipient', 'bob'];

const waiting = {
  message_id: ids.waiting.message,
  delivery_id: ids.waiting.delivery,
  event_id: ids.waiting.event,
  project,
  sender: 'alice',
  recipient: 'bob',
  target_kind: 'principal',
  content_type: 'text/plain',
  privacy: 'private',
  created_at: '2026-01-02T03:04:01.000Z',
  provenance: { transport: 'cli', source_host: 'cli' },
  payload: 'it waits',
  receipt: { sender: 'local', msg_id: ids.waiting.message },
  untrusted: true,
};
const takenIn = {
  ...waiting,
  message_id: ids.takenIn.message,
  delivery_id: ids.takenIn.delivery,
  event_id: ids.takenIn.event,
  created_at: '2026-01-02T03:04:02.000Z',
  payload: 'it was taken in',
  receipt: { sender: 'local', msg_id: ids.takenIn.message },
};
const event = ({ event_id, message_id, delivery_id, created_at }: typeof waiting) => ({
  event_id,
  event_kind: 'message_available',
  message_id,
  delivery_id,
  project,
  recipient: 'bob',
  target_kind: 'principal',
  created_at,
});
const ringFacts = [
  {
    receipt_kind: 'attempt',
    value: 'adapter_returned',
    source: 'attempt',
    actor: 'postbell-router',
    attempt_id: ids.attempt,
    attempt_number: 1,
    connection_id: ids.connection,
    session_id: 's1',
    generation: 1,
    finished_at: '2026-01-02T03:04:04.000Z',
    recorded_at: '2026-01-02T03:04:03.000Z',
  },
  {
    receipt_kind: 'host_accept',
    value: 'notice',
    source: 'host_accept',
    actor: 'postbell-router',
    host_accept_id: ids.accept,
    attempt_id: ids.attempt,
    session_id: 's1',
    adapter_kind: 'claude-listener',
    receipt: { notification_id: ids.notice, state: 'inbox_queued' },
    recorded_at: '2026-01-02T03:04:04.000Z',
    delivery_state: { intake: 'pending', target_session: 'not_applicable' },
  },
];
const receipt = { source: 'receipt', actor: 'bob', caller_session: 's1' };
const ownFacts = [
  {
    ...receipt,
    receipt_id: ids.intake,
    receipt_kind: 'intake',
    value: 'ingested',
    idempotency_key: 'i1',
    recorded_at: '2026-01-02T03:04:05.000Z',
  },
  {
    ...receipt,
    receipt_id: ids.ack,
    receipt_kind: 'ack',
    value: 'acknowledged',
    idempotency_key: 'a1',
    recorded_at: '2026-01-02T03:04:06.000Z',
  },
];

describe('a store of an older release', () => {
  it.each(olderSchemas)(
    '[MSG-108] at schema %i gives the answers that it gave, with fields added at most',
    async (schema) => {
      makeOldStore(data(), schema, fillOldStore);
      expect(await ask('inbox', 'receive', ...scope)).toMatchObject({
        messages: [waiting],
        progress_waiting: 0,
        remaining: 0,
      });
      expect(await ask('message', 'poll', ...scope)).toMatchObject({
        project,
        recipient: 'bob',
        events: [event(waiting), event(takenIn)],
        next_cursor: expect.stringMatching(/^cur_/),
      });
      const receipts = (id: string) => ask('message', 'receipts', ...scope, '--message-id', id);
      const found = { project, recipient: 'bob' };
      expect(await receipts(ids.waiting.message)).toMatchObject({
        ...found,
        message_id: ids.waiting.message,
        delivery_state: 'inbox_queued',
        receipts: ringFacts,
      });
      expect(await receipts(ids.takenIn.message)).toMatchObject({
        ...found,
        message_id: ids.takenIn.message,
        delivery_state: 'receiver_acknowledged',
        receipts: ownFacts,
      });
      const { receipt: _, ...fetched } = waiting;
      expect(await ask('message', 'fetch', ...scope, '--message-id', ids.waiting.message)).toMatchObject({
        ...fetched,
        payload_sha256: '0'.repeat(64),
      });
      // What releases with schema 1 could not be asked.
      expect(await ask('inbox', 'history', ...scope, '--peer', 'alice')).toMatchObject({
        peer: 'alice',
        messages: [
          { ...waiting, direction: 'in', delivery_state: 'inbox_queued' },
          { ...takenIn, direction: 'in', delivery_state: 'receiver_acknowledged' },
        ],
        consumed: 0,
      });
      expect(await ask('inbox', 'status', '--message-id', ids.takenIn.message)).toMatchObject({
        message_id: ids.takenIn.message,
        delivery_state: 'receiver_acknowledged',
        receipts: ownFacts,
      });
    },
  );

  it.each(olderSchemas)(
    'at schema %i: the notice that no listener had printed yet is printed',
    async (schema) => {
      makeOldStore(data(), schema, fillOldStore);
      const listener = home.start(['wait']);
      listener.child.stdin?.end('{"session_id":"s1","hook_event_name":"Stop"}');
      expect((await listener.exited).code).toBe(2);
      expect(listener.stderr()).toContain('1 message waits');
    },
  );
});

describe('rows written before a rule', () => {
  const old = { of: ids.waiting, scope: '/tmp/x', payload: 'old', second: 1, open: 1 as const };
  /** The columns that the rows had, by table, as they lie in the file; of a copy, so that no reader is beside the product. */
  const bytesOf = (file: string, columns: Record<string, string[]>): string => {
    const copy = path.join(home.dir, 'copy.db');
    copyFileSync(file, copy);
    const store = new BetterSqlite3(copy);
    const rows = Object.entries(columns).map(([table, names]) =>
      store
        .prepare(`SELECT ${names.map((name) => `typeof(${name}) || ':' || hex(${name})`).join(', ')} FROM ${table}
          WHERE message_id = ? ORDER BY seq`)
        .raw()
        .all(ids.waiting.message),
    );
    store.close();
    return JSON.stringify(rows);
  };
  const columnsOf = (file: string): Record<string, string[]> => {
    const store = new BetterSqlite3(file);
    const tables = ['message', 'delivery', 'event'];
    const found = tables.map((table) => {
      const names = store.prepare('SELECT name FROM pragma_table_info(?)').pluck().all(table) as string[];
      return [table, names] as const;
    });
    store.close();
    return Object.fromEntries(found);
  };

  it.each(olderSchemas)(
    '[MSG-016] at schema %i: a row of project /tmp/x has the same bytes after the upgrade and in use, and doctor reports it',
    async (schema) => {
      const file = makeOldStore(data(), schema, (insert) => insertMail(insert, old));
      const columns = columnsOf(file);
      const before = bytesOf(file, columns);
      expect(before).toContain(Buffer.from('/tmp/x').toString('hex').toUpperCase());
      // bob of a project that there is, is somebody else: nobody guesses that they are one.
      const sent = await answer(home.env, home.project, ['send', 'bob', '--json'], 'new');
      const here = await ask('inbox', 'receive', '--project', sent.project as string, '--recipient', 'bob');
      expect((here.messages as object[]).map((one) => (one as { payload: string }).payload)).toEqual(['new']);
      // The stricter calls do not reach it.
      const strict = await postbell(home.env, home.project, [
        'inbox',
        'receive',
        '--project',
        '/tmp/x',
        '--recipient',
        'bob',
      ]);
      expect([strict.code, strict.stdout]).toEqual([1, '']);
      await ask('inbox', 'status', '--message-id', ids.waiting.message);
      const { row } = await examined(home);
      expect(row('store')).toMatchObject({
        level: 'pass',
        text: expect.stringContaining(`schema ${olderSchemas.length + 1}, sound`),
      });
      expect(row('scope')).toMatchObject({
        level: 'info',
        text: expect.stringMatching(
          /^1 of \d+ names of projects, inboxes and sessions break today\u2019s rules \([\w -]+ 1\); nothing is changed$/,
        ),
      });
      expect(statSync(`${file}-wal`, { throwIfNoEntry: false })).toBeUndefined();
      expect(bytesOf(file, columns)).toBe(before);
    },
  );
});
