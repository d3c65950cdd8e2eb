import type { Messages, NewMessage, StoredMessage } from '../ports/mail.ts';
import { assert } from '../protocol/assert.ts';
import type { MailEvent, ReceiptEvent } from '../protocol/delivery.ts';
import { isAttentionWorthy, type Message } from '../protocol/message.ts';
import { type Database, literal, type Row } from './database.ts';
import { mine, parametersOf } from './inbox.ts';
import { instantOf } from './instant.ts';

/** Columns of a message with its delivery and event, as `messageOf` reads them. */
export const messageColumns = `
  m.message_id, d.delivery_id, e.event_id, m.project, m.sender, d.recipient, d.target_kind, d.intended_session,
  m.content_type, m.privacy, m.correlation_id, m.reply_to, m.task_id, m.status, m.expires_at, m.quiet, m.hops,
  m.created_at, m.transport, m.source_host, m.caller_session, d.peer_key AS to_key,
  m.peer_key AS from_key, m.origin_id, m.origin_session, m.origin_device`;

/** What `storedOf` reads beside them. */
export const storedColumns = `${messageColumns}, e.seq AS event_seq, d.open, d.superseded_by, m.held, m.root_id, m.tombstoned_at,
  e.created_at AS arrived_at`;

export const messageTables = `delivery d
  JOIN message m ON m.message_id = d.message_id
  JOIN event e ON e.delivery_id = d.delivery_id AND e.event_kind IN ('message_available', 'message_sent')`;

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
  const { transport, source_host, caller_session, quiet, hops, to_key, ...rest } = row;
  const { from_key, origin_id, origin_session, origin_device, ...columns } = rest;
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
    ...(from_key !== null && { peer_key: from_key }),
  };
  if (to_key !== null) message.peer = to_key;
  if (from_key !== null)
    message.origin = {
      sender_key: from_key,
      message_id: origin_id,
      return_route: {
        ...(origin_session !== null && { session: origin_session }),
        device: origin_device,
      },
    };
  return message as unknown as Message;
}

/** @param now the moment that expiry is measured by */
export function storedOf(row: Row, now: string): StoredMessage {
  const { open, event_seq, superseded_by, held, root_id, tombstoned_at, arrived_at, ...columns } = row;
  const message = messageOf(columns);
  const expired = message.expires_at !== undefined && message.expires_at <= now;
  return {
    message,
    event_seq: event_seq as number,
    waiting: open === 1 && !expired,
    attention: isAttentionWorthy(message, held === 1),
    held: held === 1,
    arrived_at: instantOf(arrived_at as string),
    ...(superseded_by !== null && { superseded_by: superseded_by as string }),
    ...(root_id !== null && { root_id: root_id as string }),
    ...(tombstoned_at !== null && { tombstoned_at: instantOf(tombstoned_at as string) }),
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
    byOrigin: (peerKey, originId) => {
      const row = database.get(
        `SELECT ${storedColumns} FROM ${messageTables} WHERE m.peer_key = ? AND m.origin_id = ?`,
        peerKey,
        originId,
      );
      return row && storedOf(row, now());
    },
    newestTakenIn: (sessionIds, since) => {
      const row = database.get(
        `SELECT d.delivery_id FROM receipt r JOIN delivery d ON d.delivery_id = r.delivery_id
         WHERE r.receipt_kind = 'intake' AND r.recorded_at >= ?
           AND r.caller_session IS NOT NULL AND r.caller_session IN (SELECT value FROM json_each(?))
         ORDER BY r.recorded_at DESC, r.seq DESC LIMIT 1`,
        since,
        JSON.stringify(sessionIds),
      );
      return row && select('d.delivery_id = ?', row.delivery_id as string);
    },
    originsOf: (originId, count) =>
      database
        .all(
          `SELECT peer_key FROM message WHERE origin_id = ? ORDER BY seq LIMIT ${literal(count)}`,
          originId,
        )
        .map((row) => row.peer_key as string),
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

type Conversations = Pick<Messages, 'replyTo' | 'automatic' | 'fromPeer' | 'history'>;

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
    automatic: ({ project, recipient, sender, sessions, peer }, { since, until }, count) =>
      database
        .all(
          `SELECT m.created_at FROM message m JOIN delivery d ON d.message_id = m.message_id
           WHERE ${sessions === undefined ? 'm.sender = ?' : 'm.caller_session IN (SELECT value FROM json_each(?))'}
             AND m.created_at > ? AND m.created_at <= ? AND m.hops > 0
             AND d.project = ? AND d.recipient = ? AND d.peer_key IS ? AND m.peer_key IS NULL
           ORDER BY m.created_at DESC LIMIT ?`,
          sessions === undefined ? sender : JSON.stringify(sessions),
          since,
          until,
          project,
          recipient,
          peer ?? null,
          count,
        )
        .map((row) => instantOf(row.created_at as string)),
    // By arrival: the time of a message is its sender's word, up to a day back.
    fromPeer: ({ peer_key, session, project, recipient }, { since, until, signedSince }, count) =>
      database
        .all(
          `SELECT e.created_at FROM message m JOIN delivery d ON d.message_id = m.message_id
           JOIN event e ON e.delivery_id = d.delivery_id AND e.event_kind = 'message_available'
           WHERE m.peer_key = :peer_key AND m.created_at > :signedSince AND m.hops > 0
             AND e.created_at > :since AND e.created_at <= :until
             AND (:session IS NULL OR m.origin_session = :session)
             AND d.project = :project AND d.recipient = :recipient ORDER BY e.created_at DESC LIMIT :count`,
          { peer_key, session: session ?? null, project, recipient, since, until, signedSince, count },
        )
        .map((row) => instantOf(row.created_at as string)),
    history: (inbox, peer, senders, count) =>
      database
        .all(historyOf, {
          ...parametersOf(inbox),
          label: 'label' in peer ? peer.label : '',
          peer: 'label' in peer ? peer.recipient : '',
          key: 'key' in peer ? peer.key : null,
          recipients: JSON.stringify([
            ...inbox.principals,
            ...inbox.targets,
            ...('label' in peer ? [peer.recipient] : []),
          ]),
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

/** From a peer by its key, whatever it calls itself; else by the label of a local sender. */
const incoming = `(${mine} AND iif(:key IS NULL, m.peer_key IS NULL AND m.sender IN (:label, :peer), m.peer_key = :key))`;

const outgoing = `(iif(:key IS NULL, d.peer_key IS NULL AND d.recipient = :peer, d.peer_key = :key)
  AND m.peer_key IS NULL AND (m.sender IN (SELECT value FROM json_each(:labels))
    OR m.caller_session IN (SELECT value FROM json_each(:sessions))))`;

/** The scope of the events narrows the search: the two inboxes, and those whose mail is meant for the session. */
const historyOf = `
  SELECT ${storedColumns}, ${incoming} AS incoming FROM ${messageTables}
  WHERE e.project = :project AND e.recipient IN (
      SELECT value FROM json_each(:recipients)
      UNION SELECT x.recipient FROM delivery x
      WHERE x.project = :project AND (x.peer_key = :key OR x.intended_session IN (SELECT value FROM json_each(:intended))))
    AND (${incoming} OR ${outgoing})
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
       expires_at, quiet, hops, held, created_at, transport, source_host, caller_session, payload, payload_sha256,
       peer_key, origin_id, origin_session, origin_device, root_id)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
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
    m.origin?.sender_key ?? null,
    m.origin?.message_id ?? null,
    m.origin?.return_route?.session ?? null,
    m.origin?.return_route?.device ?? null,
    row.root_id ?? null,
  );
  insertDelivery(database, m, row.arrived_at ?? m.created_at);
  if (row.idempotency !== undefined)
    database.run(
      'INSERT INTO idempotency VALUES (?, ?, ?, ?, ?)',
      m.project,
      m.sender,
      row.idempotency.key,
      row.idempotency.content_sha256,
      m.message_id,
    );
  database.run(
    'UPDATE storage SET payload_bytes = payload_bytes + octet_length(?) WHERE one = 1',
    row.payload,
  );
}

/** What goes to a peer waits for nobody here, and is nobody's mail to poll. */
function insertDelivery(database: Database, m: Message, at: string): void {
  database.run(
    `INSERT INTO delivery (delivery_id, message_id, project, recipient, target_kind, intended_session, expires_at, peer_key, open)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    m.delivery_id,
    m.message_id,
    m.project,
    m.recipient,
    m.target_kind,
    m.intended_session ?? null,
    m.expires_at ?? null,
    m.peer ?? null,
    m.peer === undefined ? 1 : 0,
  );
  database.run(
    `INSERT INTO event (${eventColumns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    m.event_id,
    m.peer === undefined ? 'message_available' : 'message_sent',
    m.message_id,
    m.delivery_id,
    m.project,
    m.recipient,
    m.target_kind,
    at,
  );
}
