// What doctor asks of the store, and of SQLite itself. Nothing is written.

import BetterSqlite3 from 'better-sqlite3';
import type {
  LinkFacts,
  LiveSession,
  MailFacts,
  QueueRelease,
  SqliteFacts,
  StoreFacts,
} from '../ports/inspection.ts';
import { checkVersion, isFit, patiently } from './connection.ts';
import { damageOf } from './damage.ts';
import { type Database, storeFault } from './database.ts';
import { gate } from './gate.ts';
import { identity } from './identity.ts';
import { instantOf } from './instant.ts';
import { needsMigration, schemaKnown } from './migrate.ts';
import type { StoreOptions } from './open.ts';
import { connectReadOnly } from './open-read-only.ts';

const ringsAsked = 3;
const dayMs = 86_400_000;
const weekMs = 7 * dayMs;
const releasesAskedMs = weekMs;

/**
 * The store at `path` as it is; undefined where there is none, or nothing was ever made in it. Faults of `openStore`.
 * @param sessions whose chains are asked about
 */
export async function inspectStore(
  options: StoreOptions,
  sessions: readonly string[] = [],
): Promise<StoreFacts | undefined> {
  const { path, clock } = options;
  const database = connectReadOnly(path);
  try {
    return database && (await patiently(options, () => factsOf(database, path, clock.nowMs(), sessions)));
  } catch (error) {
    throw storeFault(error, path);
  } finally {
    database?.close();
  }
}

function factsOf(
  database: Database,
  path: string,
  nowMs: number,
  sessions: readonly string[],
): StoreFacts | undefined {
  checkVersion(database);
  const older = needsMigration(database, path);
  const schema = database.pragma('user_version') as number;
  if (schema === 0) return undefined;
  const damage = damageOf(database);
  if (damage !== undefined || older) return { schema, schemaKnown, ...(damage !== undefined && { damage }) };
  return { schema, schemaKnown, mail: mailFacts(database, nowMs, sessions) };
}

function mailFacts(database: Database, nowMs: number, sessions: readonly string[]): MailFacts {
  return {
    payloadBytes: database.get('SELECT payload_bytes AS bytes FROM storage')?.bytes as number,
    identifiers: database.all(everyIdentifier).map(({ name }) => name as string),
    live: liveSessions(database, nowMs),
    expired: expired(database, nowMs),
    roots: Object.fromEntries(sessions.map((id) => [id, identity(database).chain(id)[0] as string])),
    queueReleases: queueReleases(database, nowMs),
    link: linkFacts(database, nowMs),
  };
}

const everyIdentifier = `
  SELECT project AS name FROM message UNION SELECT sender FROM message
  UNION SELECT project FROM delivery UNION SELECT recipient FROM delivery
  UNION SELECT intended_session FROM delivery WHERE intended_session IS NOT NULL
  UNION SELECT project FROM principal UNION SELECT principal_id FROM principal
  UNION SELECT project FROM session UNION SELECT session_id FROM session UNION SELECT principal_id FROM session`;

/** The newest connection of each, as `Sessions` defines live. */
function liveSessions(database: Database, nowMs: number): LiveSession[] {
  const rows = database.all(
    `SELECT c.project, c.session_id, s.host_kind, c.bell, c.connected_at, max(c.seq)
     FROM connection c JOIN session s ON s.project = c.project AND s.session_id = c.session_id
     WHERE c.disconnected_at IS NULL AND c.lease_expires_at_ms > ?
     GROUP BY c.project, c.session_id ORDER BY c.project, c.session_id`,
    nowMs,
  );
  return rows.map(({ project, session_id, host_kind, bell, connected_at }) => {
    const chain = identity(database).chain(session_id as string);
    return {
      ...({ project, session_id, host_kind, bell } as Pick<
        LiveSession,
        'project' | 'session_id' | 'host_kind' | 'bell'
      >),
      connected_at: instantOf(connected_at as string),
      hookSeen: hookSeen(database, chain),
      unanswered: unanswered(database, chain[0] as string),
    };
  });
}

/** The hook of a session's start leaves which process runs it. */
const hookSeen = (database: Database, chain: readonly string[]): boolean =>
  database.get(
    'SELECT 1 FROM launcher WHERE session_id IN (SELECT value FROM json_each(?)) LIMIT 1',
    JSON.stringify(chain),
  ) !== undefined;

function unanswered(database: Database, root: string): boolean {
  const asked = database.get(
    `WITH ring AS (
       SELECT notification_id AS id FROM reservation n WHERE session_root = ? AND EXISTS
         (SELECT 1 FROM reservation_cover v WHERE v.notification_id = n.notification_id AND v.rung = 1)
       ORDER BY seq DESC LIMIT ?)
     SELECT (SELECT count(*) FROM ring) AS rings,
       EXISTS (SELECT 1 FROM reservation_cover v JOIN receipt r ON r.delivery_id = v.delivery_id
         WHERE v.notification_id IN (SELECT id FROM ring) AND r.receipt_kind = 'intake') AS answered`,
    root,
    ringsAsked,
  );
  return asked?.rings === ringsAsked && asked.answered === 0;
}

/** Without those that are live again. */
function expired(database: Database, nowMs: number): number {
  const row = database.get(
    `SELECT count(*) AS count FROM (SELECT DISTINCT c.project, c.session_id FROM connection c
       WHERE ((c.disconnect_reason = 'lease_expired' AND c.disconnected_at > :since)
         OR (c.disconnected_at IS NULL AND c.lease_expires_at_ms <= :now AND c.lease_expires_at_ms > :sinceMs))
       AND NOT EXISTS (SELECT 1 FROM connection n WHERE n.project = c.project AND n.session_id = c.session_id
         AND n.seq > c.seq))`,
    { now: nowMs, sinceMs: nowMs - dayMs, since: new Date(nowMs - dayMs).toISOString() },
  );
  return row?.count as number;
}

function linkFacts(database: Database, nowMs: number): LinkFacts {
  const since = new Date(nowMs - weekMs).toISOString();
  const stale = database.all(
    `SELECT DISTINCT peer_key FROM receipt
     WHERE source = 'peer' AND receipt_kind = 'refused' AND value = 'stale' AND recorded_at > ? ORDER BY peer_key`,
    since,
  );
  const looped = database.get(
    `SELECT count(DISTINCT m.root_id) AS chains FROM message m JOIN event e ON e.message_id = m.message_id
     WHERE m.hops > 31 AND m.peer_key IS NOT NULL AND e.event_kind = 'message_available' AND e.created_at > ?`,
    since,
  );
  return {
    outbox: outboxFacts(database),
    refused: gate(database).counts(),
    stale: stale.map(({ peer_key }) => peer_key as string),
    looped: looped?.chains as number,
  };
}

function outboxFacts(database: Database): LinkFacts['outbox'] {
  const count = database.get('SELECT count(*) AS count FROM outbox WHERE ended_at IS NULL')?.count as number;
  const oldest = database.get(
    `SELECT m.created_at, o.peer_key,
       EXISTS (SELECT 1 FROM outbox_post p WHERE p.message_id = o.message_id AND p.accepted_ms IS NOT NULL) AS relayed,
       (SELECT p.last_error FROM outbox_post p WHERE p.message_id = o.message_id AND p.last_error IS NOT NULL LIMIT 1) AS last_error
     FROM outbox o JOIN message m ON m.message_id = o.message_id WHERE o.ended_at IS NULL ORDER BY o.seq LIMIT 1`,
  );
  if (oldest === undefined) return { count };
  return {
    count,
    oldest: {
      created_at: instantOf(oldest.created_at as string),
      peer_key: oldest.peer_key as string,
      relayed: oldest.relayed === 1,
      last_error: oldest.last_error as string | null,
    },
  };
}

/** By the thread whose host accepted the delivery; what a recipient says of its own host is another matter. */
function queueReleases(database: Database, nowMs: number): QueueRelease[] {
  const rows = database.all(
    `SELECT c.session_id, r.value, r.detail, max(r.seq)
     FROM receipt r JOIN host_accept h ON h.delivery_id = r.delivery_id
     JOIN attempt a ON a.attempt_id = h.attempt_id JOIN connection c ON c.connection_id = a.connection_id
     WHERE r.receipt_kind = 'host_activation' AND r.actor = 'postbell-router' AND r.recorded_at > ?
     GROUP BY c.session_id ORDER BY c.session_id`,
    new Date(nowMs - releasesAskedMs).toISOString(),
  );
  return rows.map(({ session_id, value, detail }) => {
    const reason = reasonIn(detail);
    return {
      session_id: session_id as string,
      value: value as string,
      ...(reason !== undefined && { reason }),
    };
  });
}

function reasonIn(detail: unknown): string | undefined {
  try {
    const { reason } = JSON.parse(String(detail)) as { reason?: unknown };
    return typeof reason === 'string' ? reason : undefined;
  } catch {
    return undefined;
  }
}

/** Throws where the driver cannot be loaded. */
export function sqliteFacts(): SqliteFacts {
  const driver = new BetterSqlite3(':memory:');
  try {
    const { version, fts5 } = driver
      .prepare("SELECT sqlite_version() AS version, sqlite_compileoption_used('ENABLE_FTS5') AS fts5")
      .get() as { version: string; fts5: number };
    return { version, fit: isFit(version), fts5: fts5 === 1 };
  } finally {
    driver.close();
  }
}
