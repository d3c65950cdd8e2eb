// A store as an older release left it: the numbered migrations up to its schema, and rows written by no code of today.

import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { root } from './postbell.ts';

const sqlDirectory = path.join(root, 'src', 'store', 'sql');

/** Every schema before today's. */
export const olderSchemas = readdirSync(sqlDirectory)
  .sort()
  .slice(0, -1)
  .map((_name, index) => index + 1);

export const project = 'shop~0123456789abcdef0123456789abcdef';
const id = (kind: string, nth: number): string => `${kind}_01j0000000000000000000000${nth}`;
export const ids = {
  waiting: { message: id('msg', 1), delivery: id('dlv', 1), event: id('evt', 1) },
  takenIn: { message: id('msg', 2), delivery: id('dlv', 2), event: id('evt', 2) },
  attempt: id('att', 1),
  accept: id('acc', 1),
  connection: id('con', 1),
  notice: id('ntf', 1),
  intake: id('rcp', 1),
  ack: id('rcp', 2),
};
const at = (second: number): string => `2026-01-02T03:04:0${second}.000Z`;

type Values = Record<string, string | number | null>;

/** Makes the store of `data` at that schema, with these rows in it. */
export function makeOldStore(
  data: string,
  schema: number,
  fill: (insert: Insert, schema: number) => void,
): string {
  mkdirSync(data, { recursive: true, mode: 0o700 });
  const file = path.join(data, 'postbell.db');
  const umask = process.umask(0o077);
  const driver = new BetterSqlite3(file);
  process.umask(umask);
  driver.pragma('journal_mode = WAL');
  for (const name of readdirSync(sqlDirectory).sort().slice(0, schema))
    driver.exec(readFileSync(path.join(sqlDirectory, name), 'utf8'));
  driver.pragma(`user_version = ${schema}`);
  fill((table, values) => {
    const names = Object.keys(values);
    const marks = names.map(() => '?').join(', ');
    driver
      .prepare(`INSERT INTO ${table} (${names.join(', ')}) VALUES (${marks})`)
      .run(...Object.values(values));
  }, schema);
  // As each release has counted since it could.
  if (schema >= 2)
    driver.exec(
      'UPDATE storage SET payload_bytes = (SELECT coalesce(sum(octet_length(payload)), 0) FROM message)',
    );
  driver.close();
  return file;
}

export type Insert = (table: string, values: Values) => void;

/** A message with its delivery and its event. */
export function insertMail(
  insert: Insert,
  {
    of,
    scope = project,
    recipient = 'bob',
    payload,
    second,
    open,
  }: {
    of: { message: string; delivery: string; event: string };
    scope?: string;
    recipient?: string;
    payload: string;
    second: number;
    open: 0 | 1;
  },
): void {
  insert('message', {
    message_id: of.message,
    project: scope,
    sender: 'alice',
    content_type: 'text/plain',
    privacy: 'private',
    created_at: at(second),
    transport: 'cli',
    source_host: 'cli',
    payload: JSON.stringify(payload),
    payload_sha256: '0'.repeat(64),
  });
  const to = {
    message_id: of.message,
    delivery_id: of.delivery,
    project: scope,
    recipient,
    target_kind: 'principal',
  };
  insert('delivery', { ...to, open });
  insert('event', { ...to, event_id: of.event, event_kind: 'message_available', created_at: at(second) });
}

/** Mail of bob: one that was rung and waits, and one that his session took in; with the session, its ring and its rows. */
export function fillOldStore(insert: Insert): void {
  insertMail(insert, { of: ids.waiting, payload: 'it waits', second: 1, open: 1 });
  insertMail(insert, { of: ids.takenIn, payload: 'it was taken in', second: 2, open: 0 });
  insert('idempotency', {
    project,
    sender: 'alice',
    idempotency_key: 'k1',
    content_sha256: '0'.repeat(64),
    message_id: ids.waiting.message,
  });
  insert('principal', { project, principal_id: 'bob', activation_checkpoint: 0 });
  const session = {
    project,
    session_id: 's1',
    principal_id: 'bob',
    adapter_kind: 'claude-listener',
    bell: 'listener',
  };
  insert('session', { ...session, host_kind: 'claude', generation: 1 });
  insert('connection', {
    ...session,
    connection_id: ids.connection,
    generation: 1,
    router_instance: 'r1',
    lease_expires_at_ms: Date.parse(at(9)),
    connected_at: at(0),
    disconnected_at: at(8),
    disconnect_reason: 'socket_closed',
  });
  insert('attempt', {
    attempt_id: ids.attempt,
    delivery_id: ids.waiting.delivery,
    attempt_number: 1,
    connection_id: ids.connection,
    router_instance: 'r1',
    state: 'adapter_returned',
    started_at: at(3),
    finished_at: at(4),
  });
  insert('host_accept', {
    host_accept_id: ids.accept,
    delivery_id: ids.waiting.delivery,
    attempt_id: ids.attempt,
    content: 'notice',
    adapter_kind: 'claude-listener',
    receipt: JSON.stringify({ notification_id: ids.notice, state: 'inbox_queued' }),
    accepted_at: at(4),
  });
  insert('reservation', {
    notification_id: ids.notice,
    session_root: 's1',
    state: 'inbox_queued',
    step: 0,
    rung_at_ms: Date.parse(at(4)),
    expires_at_ms: Date.parse(at(9)),
  });
  insert('reservation_cover', { delivery_id: ids.waiting.delivery, notification_id: ids.notice, rung: 1 });
  insert('listener_row', {
    session_id: 's1',
    notification_id: ids.notice,
    text: '[Postbell inbox notice]\n1 message waits\n',
    created_at: at(4),
  });
  insert('listener_cursor', { session_root: 's1', position: 0 });
  const receipt = { delivery_id: ids.takenIn.delivery, actor: 'bob', caller_session: 's1' };
  insert('receipt', {
    ...receipt,
    receipt_id: ids.intake,
    receipt_kind: 'intake',
    idempotency_key: 'i1',
    value: 'ingested',
    recorded_at: at(5),
  });
  insert('receipt', {
    ...receipt,
    receipt_id: ids.ack,
    receipt_kind: 'ack',
    idempotency_key: 'a1',
    value: 'acknowledged',
    recorded_at: at(6),
  });
}
