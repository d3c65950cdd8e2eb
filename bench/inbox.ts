// Target 13: an inbox of 20 with bodies, in a store with a million consumed messages, beside one with ten thousand.

import path from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import type { Caller } from '../src/mailbox/desk.ts';
import { receive } from '../src/mailbox/receive.ts';
import { isRefusal } from '../src/protocol/errors.ts';
import { type BenchDesk, openDesk, sendOne } from './desk.ts';
import { alternate, median, type Outcome, type Plan, timed } from './metric.ts';

const waiting = 20;
const reader: Caller = { transport: 'mcp', source_host: 'bench', session: 's1', principal: 'r' };

export async function inboxOfTwenty({ directory, quick }: Plan): Promise<Outcome[]> {
  const many = quick ? 100_000 : 1_000_000;
  const few = quick ? 1_000 : 10_000;
  const small = await stored(path.join(directory, 'inbox-small'), few);
  const large = await stored(path.join(directory, 'inbox-large'), many);
  const read = (desk: BenchDesk) => () =>
    timed(() => {
      const answer = receive(desk, { project: 'p' }, reader);
      if (isRefusal(answer) || answer.messages.length !== waiting) throw new Error('the inbox is another');
    });
  const values = await alternate(quick ? 300 : 1_000, 50, { large: read(large), small: read(small) });
  small.close();
  large.close();
  return [
    {
      id: '13',
      what: `inbox of ${waiting} with bodies, ${many} stored`,
      unit: 'ms',
      measured: median(values.large),
      yardstick: { what: `${few} stored`, value: median(values.small) },
      target: 1.3,
      stretch: 1.1,
    },
  ];
}

/** A store with `count` consumed messages, and 20 that wait. */
async function stored(home: string, count: number): Promise<BenchDesk> {
  const desk = await openDesk(home, 'no router');
  await sendOne(desk, { project: 'p', recipient: 'other' }, 'first');
  fill(path.join(home, 'postbell.db'), count);
  for (let nth = 0; nth < waiting; nth += 1)
    await sendOne(desk, { project: 'p', recipient: 'r' }, `waiting-${nth}`);
  return desk;
}

/** Copies of the first message for the same inbox, each with its intake. */
export function fill(file: string, count: number): void {
  const database = new BetterSqlite3(file);
  database.exec('PRAGMA synchronous = OFF; PRAGMA cache_size = -200000; BEGIN');
  const numbers = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})`;
  database.exec(`
    ${numbers} INSERT INTO message (message_id, project, sender, content_type, privacy, created_at, transport, source_host,
      payload, payload_sha256)
      SELECT 'msg_' || i, 'p', 'bench', 'text/plain', 'private', m.created_at, 'mcp', 'bench', '"x"', m.payload_sha256
      FROM n, message m WHERE m.seq = 1;
    ${numbers} INSERT INTO delivery (delivery_id, message_id, project, recipient, target_kind, open)
      SELECT 'dlv_' || i, 'msg_' || i, 'p', 'r', 'principal', 0 FROM n;
    ${numbers} INSERT INTO event (event_id, event_kind, message_id, delivery_id, project, recipient, target_kind, created_at)
      SELECT 'evt_' || i, 'message_available', 'msg_' || i, 'dlv_' || i, 'p', 'r', 'principal', '2026-01-01T00:00:00.000Z'
      FROM n;
    ${numbers} INSERT INTO receipt (receipt_id, delivery_id, receipt_kind, idempotency_key, value, actor, recorded_at)
      SELECT 'rcp_' || i, 'dlv_' || i, 'intake', 'k', 'ingested', 'r', '2026-01-01T00:00:00.000Z' FROM n;
    COMMIT`);
  database.close();
}
