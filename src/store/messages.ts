import type { Messages, NewMessage, StoredMessage } from '../ports/mail.ts';
import { assert } from '../protocol/assert.ts';
import type { MailEvent, ReceiptEvent } from '../protocol/delivery.ts';
import { isAttentionWorthy, type Message } from '../protocol/message.ts';
import type { Database, Row } from './database.ts';
import { mine, parametersOf } from './inbox.ts';
import { instantOf } from './instant.ts';

/** Columns of a message with its delivery and event, as `messageOf` reads them. */
export const messageColumns = `
  m.message_id, d.delivery_id, e.event_id, m.project, m.sender, d.recipient, d.target_kind, d.intended_session,
  m.content_type, m.privacy, m.correlation_id, m.reply_to, m.task_id, m.status, m.expires_at, m.quiet, m.hops,
  m.created_at, m.transport, m.source_host, m.caller_session`;

/** What `storedOf` reads beside them. */
export const storedColumns = `${messageColumns}, e.seq AS event_seq, d.open, d.superseded_by, m.held`;

export const messageTables = `delivery d
  JOIN message m ON m.message_id = d.message_id
  JOIN event e ON e.delivery_id = d.delivery_id AND e.event_kind = 'message_available'`;

const optionalColumns = [
  'intended_session',
  'correlation_id',
  'reply_to',
  'task_id',
  'status',
  'expires_at',
] as const;

/** A row of `messageColumns` as a message; absent fields are left out. */
export function messageOf(row: Row): Message {
  const { transport, source_host, caller_session, quiet, hops, ...columns } = row;
  const created_at = instantOf(columns.created_at as string);
  const message: Record<string, unknown> = { ...columns, created_at };
  if (typeof columns.expires_at === 'string') message.expires_at = instantOf(columns.expires_at);
  for (const name of optionalColumns) if (message[name] === null) delete message[name];
  if (quiet === 1) message.quiet = true;
  if (hops !== 0) message.hops = hops;
  message.provenance = {
    transport,
    source_host,
    ...(caller_session !== null && { session: caller_session }),
  };
  return message as unknown as Message;
}

/** @param now the moment that expiry is measured by */
export function storedOf(row: Row, now: string): StoredMessage {
  const { open, event_seq, superseded_by, held, ...columns } = row;
  const message = messageOf(columns);
  const expired = message.expires_at !== undefined && message.expires_at <= now;
  return {
    message,
    event_seq: event_seq as number,
    waiting: open === 1 && !expired,
    attention: isAttentionWorthy(message, held === 1),
    held: held === 1,
    ...(superseded_by !== null && { superseded_by: superseded_by as string }),
  };
}

const eventColumns = `event_id, event_kind, message_id, delivery_id, project, recipient, target_kind, created_at`;

/** @param now the moment, as stored times are written */
export function messages(database: Database, now: () => string): Messages {
  const select = (where: string, parameter: string): StoredMessage | undefined => {
    const row = database.get(`SELECT ${storedColumns} FROM ${messageTables} WHERE ${where}`, parameter);
    return row && storedOf(row, now());
  };
  return {
    insert: (row) => insert(database, row),
    byIdempotencyKey: (project, sender, key) =>
      database.get(
        'SELECT content_sha256, message_id FROM idempotency WHERE project = ? AND sender = ? AND idempotency_key = ?',
        project,
        sender,
        key,
      ) as { content_sha256: string; message_id: string } | undefined,
    byId: (messageId) => select('d.message_id = ?', messageId),
    byDelivery: (deliveryId) => select('d.delivery_id = ?', deliveryId),
    payload: (messageId) => {
      const row = database.get('SELECT payload, payload_sha256 FROM message WHERE message_id = ?', messageId);
      assert(row !== undefined, 'a delivery has its message');
      return { json: row.payload as string, sha256: row.payload_sha256 as string };
    },
    lastEvent: (project) =>
      (database.get('SELECT max(seq) AS seq FROM event WHERE project = ?', project)?.seq ?? 0) as number,
    payloadBytes: () =>
      database.get('SELECT payload_bytes FROM storage WHERE one = 1')?.payload_bytes as number,
    ...conversations(database, now),
    ...events(database),
  };
}

type Conversations = Pick<Messages, 'replyTo' | 'automatic' | 'history'>;

function conversations(database: Database, now: () => string): Conversations {
  return {
    replyTo: (project, messageId, { principals, sessions }) => {
      const row = database.get(
        `SELECT ${messageColumns} FROM ${messageTables}
         WHERE m.reply_to = :messageId AND m.project = :project AND (
           (d.target_kind = 'principal' AND d.recipient IN (SELECT value FROM json_each(:principals)))
           OR (d.target_kind = 'session' AND d.recipient IN (SELECT value FROM json_each(:sessions))))
         ORDER BY m.seq LIMIT 1`,
        { project, messageId, principals: JSON.stringify(principals), sessions: JSON.stringify(sessions) },
      );
      return row && messageOf(row);
    },
    automatic: ({ project, recipient, sender, sessions }, { since, until }, count) =>
      database
        .all(
          `SELECT m.created_at FROM message m JOIN delivery d ON d.message_id = m.message_id
           WHERE ${sessions === undefined ? 'm.sender = ?' : 'm.caller_session IN (SELECT value FROM json_each(?))'}
             AND m.created_at > ? AND m.created_at <= ? AND m.hops > 0
             AND d.project = ? AND d.recipient = ? ORDER BY m.created_at DESC LIMIT ?`,
          sessions === undefined ? sender : JSON.stringify(sessions),
          since,
          until,
          project,
          recipient,
          count,
        )
        .map((row) => instantOf(row.created_at as string)),
    history: (inbox, peer, senders, count) =>
      database
        .all(historyOf, {
          ...parametersOf(inbox),
          label: peer.label,
          peer: peer.recipient,
          recipients: JSON.stringify([...inbox.principals, ...inbox.targets, peer.recipient]),
          labels: JSON.stringify(senders.labels),
          sessions: JSON.stringify(senders.sessions),
          count,
        })
        .map(({ incoming, ...row }) => ({
          stored: storedOf(row, now()),
          direction: incoming === 1 ? ('in' as const) : ('out' as const),
        })),
  };
}

const incoming = `(${mine} AND m.sender IN (:label, :peer))`;

/** The scope of the events narrows the search: the two inboxes, and those whose mail is meant for the session. */
const historyOf = `
  SELECT ${storedColumns}, ${incoming} AS incoming FROM ${messageTables}
  WHERE e.project = :project AND e.recipient IN (
      SELECT value FROM json_each(:recipients)
      UNION SELECT x.recipient FROM delivery x
      WHERE x.project = :project AND x.intended_session IN (SELECT value FROM json_each(:intended)))
    AND (${incoming}
    OR (d.recipient = :peer AND (m.sender IN (SELECT value FROM json_each(:labels))
      OR m.caller_session IN (SELECT value FROM json_each(:sessions)))))
  ORDER BY m.created_at DESC, m.message_id DESC LIMIT :count`;

type Events = Pick<Messages, 'events' | 'receiptEvents' | 'bounds'>;

function events(database: Database): Events {
  return {
    events: (project, recipient, position, count) =>
      database
        .all(
          `SELECT seq, ${eventColumns} FROM event
           WHERE project = ? AND recipient = ? AND seq > ? AND event_kind = 'message_available' ORDER BY seq LIMIT ?`,
          project,
          recipient,
          position,
          count,
        )
        .map(({ seq, created_at, ...event }) => ({
          seq: seq as number,
          event: { ...event, created_at: instantOf(created_at as string) } as unknown as MailEvent,
        })),
    receiptEvents: (project, sender, position, count) =>
      database
        .all(
          `SELECT e.seq, e.event_id, e.event_kind, e.message_id, r.receipt_kind, r.value, r.recorded_at
           FROM event e JOIN receipt r ON r.receipt_id = e.receipt_id
           WHERE e.project = ? AND e.recipient = ? AND e.seq > ? AND e.event_kind = 'receipt_recorded'
           ORDER BY e.seq LIMIT ?`,
          project,
          sender,
          position,
          count,
        )
        .map(({ seq, recorded_at, ...event }) => ({
          seq: seq as number,
          event: { ...event, recorded_at: instantOf(recorded_at as string) } as unknown as ReceiptEvent,
        })),
    bounds: () => {
      const first = database.get('SELECT event_id FROM event ORDER BY seq LIMIT 1')?.event_id;
      const last = database.get('SELECT max(seq) AS seq FROM event')?.seq;
      return first === undefined ? undefined : { first: first as string, last: last as number };
    },
  };
}

function insert(database: Database, { message: m, ...row }: NewMessage): void {
  database.run(
    `INSERT INTO message (message_id, project, sender, content_type, privacy, correlation_id, reply_to, task_id, status,
       expires_at, quiet, hops, held, created_at, transport, source_host, caller_session, payload, payload_sha256)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    m.message_id,
    m.project,
    m.sender,
    m.content_type,
    m.privacy,
    m.correlation_id ?? null,
    m.reply_to ?? null,
    m.task_id ?? null,
    m.status ?? null,
    m.expires_at ?? null,
    m.quiet ? 1 : 0,
    m.hops ?? 0,
    row.held ? 1 : 0,
    m.created_at,
    m.provenance.transport,
    m.provenance.source_host,
    m.provenance.session ?? null,
    row.payload,
    row.payload_sha256,
  );
  database.run(
    `INSERT INTO delivery (delivery_id, message_id, project, recipient, target_kind, intended_session, expires_at)
     VALUES (?, ?, ?, ?, ?, ?, ?)`,
    m.delivery_id,
    m.message_id,
    m.project,
    m.recipient,
    m.target_kind,
    m.intended_session ?? null,
    m.expires_at ?? null,
  );
  database.run(
    `INSERT INTO event (${eventColumns}) VALUES (?, 'message_available', ?, ?, ?, ?, ?, ?)`,
    m.event_id,
    m.message_id,
    m.delivery_id,
    m.project,
    m.recipient,
    m.target_kind,
    m.created_at,
  );
  database.run(
    'INSERT INTO idempotency VALUES (?, ?, ?, ?, ?)',
    m.project,
    m.sender,
    row.idempotency_key,
    row.content_sha256,
    m.message_id,
  );
  database.run(
    'UPDATE storage SET payload_bytes = payload_bytes + octet_length(?) WHERE one = 1',
    row.payload,
  );
}
