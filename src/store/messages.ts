import type { Messages, NewMessage, StoredMessage } from '../ports/store.ts';
import { assert } from '../protocol/assert.ts';
import type { MailEvent } from '../protocol/delivery.ts';
import type { Message } from '../protocol/message.ts';
import type { Database, Row } from './database.ts';

/** Columns of a message with its delivery and event, as `messageOf` reads them. */
export const messageColumns = `
  m.message_id, d.delivery_id, e.event_id, m.project, m.sender, d.recipient, d.target_kind, d.intended_session,
  m.content_type, m.privacy, m.correlation_id, m.reply_to, m.task_id, m.status, m.quiet, m.created_at,
  m.transport, m.source_host, m.caller_session`;

export const messageTables = `delivery d
  JOIN message m ON m.message_id = d.message_id
  JOIN event e ON e.delivery_id = d.delivery_id AND e.event_kind = 'message_available'`;

const optionalColumns = ['intended_session', 'correlation_id', 'reply_to', 'task_id', 'status'] as const;

/** A row of `messageColumns` as a message; absent fields are left out. */
export function messageOf(row: Row): Message {
  const { transport, source_host, caller_session, quiet, ...columns } = row;
  const message: Record<string, unknown> = { ...columns };
  for (const name of optionalColumns) if (message[name] === null) delete message[name];
  if (quiet === 1) message.quiet = true;
  message.provenance = {
    transport,
    source_host,
    ...(caller_session !== null && { session: caller_session }),
  };
  return message as unknown as Message;
}

function storedOf(row: Row | undefined): StoredMessage | undefined {
  if (row === undefined) return undefined;
  const { open, event_seq, ...columns } = row;
  return { message: messageOf(columns), waiting: open === 1, event_seq: event_seq as number };
}

const eventColumns = `event_id, event_kind, message_id, delivery_id, project, recipient, target_kind, created_at`;

export function messages(database: Database): Messages {
  const select = (where: string, parameter: string): StoredMessage | undefined =>
    storedOf(
      database.get(
        `SELECT ${messageColumns}, d.open, e.seq AS event_seq FROM ${messageTables} WHERE ${where}`,
        parameter,
      ),
    );
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
    events: (project, recipient, position, count) =>
      database
        .all(
          `SELECT seq, ${eventColumns} FROM event WHERE project = ? AND recipient = ? AND seq > ? ORDER BY seq LIMIT ?`,
          project,
          recipient,
          position,
          count,
        )
        .map(({ seq, ...event }) => ({ seq: seq as number, event: event as unknown as MailEvent })),
    cursorPosition: (project, recipient, token) =>
      database.get(
        'SELECT position FROM cursor WHERE token = ? AND project = ? AND recipient = ?',
        token,
        project,
        recipient,
      )?.position as number | undefined,
    cursorToken: (project, recipient, position, newToken) => {
      database.run(
        'INSERT OR IGNORE INTO cursor VALUES (?, ?, ?, ?)',
        newToken,
        project,
        recipient,
        position,
      );
      return database.get(
        'SELECT token FROM cursor WHERE project = ? AND recipient = ? AND position = ?',
        project,
        recipient,
        position,
      )?.token as string;
    },
  };
}

function insert(database: Database, { message: m, ...row }: NewMessage): void {
  database.run(
    `INSERT INTO message (message_id, project, sender, content_type, privacy, correlation_id, reply_to, task_id, status,
       quiet, created_at, transport, source_host, caller_session, payload, payload_sha256)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    m.message_id,
    m.project,
    m.sender,
    m.content_type,
    m.privacy,
    m.correlation_id ?? null,
    m.reply_to ?? null,
    m.task_id ?? null,
    m.status ?? null,
    m.quiet ? 1 : 0,
    m.created_at,
    m.provenance.transport,
    m.provenance.source_host,
    m.provenance.session ?? null,
    row.payload,
    row.payload_sha256,
  );
  database.run(
    `INSERT INTO delivery (delivery_id, message_id, project, recipient, target_kind, intended_session)
     VALUES (?, ?, ?, ?, ?, ?)`,
    m.delivery_id,
    m.message_id,
    m.project,
    m.recipient,
    m.target_kind,
    m.intended_session ?? null,
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
}
