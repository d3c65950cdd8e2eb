import type { ConnectionRow, SessionRow, Sessions } from '../ports/presence.ts';
import type { Bell, Card } from '../protocol/session.ts';
import type { Database, Row } from './database.ts';
import { instantOf } from './instant.ts';

const connectionColumns = `c.connection_id, c.project, c.session_id, c.generation, c.principal_id, c.adapter_kind, c.bell,
  c.router_instance, c.lease_expires_at_ms, c.connected_at, c.disconnect_reason`;

/** The one definition of liveness: no disconnect, and a lease in the future. */
const isLive = 'c.disconnected_at IS NULL AND c.lease_expires_at_ms > ?';

const sessionColumns =
  's.project, s.session_id, s.principal_id, s.adapter_kind, s.bell, s.host_kind, s.generation';

/** With its time as it is returned. */
const connectionOf = (row: Row): ConnectionRow =>
  ({ ...row, connected_at: instantOf(row.connected_at as string) }) as unknown as ConnectionRow;

const ofIds = (table: string): string => `${table}.session_id IN (SELECT value FROM json_each(?))`;

export function sessions(database: Database): Sessions {
  return { ...reading(database), ...ofPrincipal(database), ...writing(database) };
}

type Writing = Pick<Sessions, 'connect' | 'renew' | 'disconnect'>;
type OfPrincipal = Pick<Sessions, 'connectionsOf' | 'projectsOf' | 'liveAnywhere'>;

function reading(database: Database): Omit<Sessions, keyof (Writing & OfPrincipal)> {
  const connection = (sql: string, ...parameters: (string | number)[]): ConnectionRow | undefined => {
    const row = database.get(`SELECT ${connectionColumns} FROM connection c ${sql}`, ...parameters);
    return row && connectionOf(row);
  };
  return {
    registered: (project, ids) =>
      database.get(
        `SELECT ${sessionColumns} FROM session s
         JOIN connection c ON c.project = s.project AND c.session_id = s.session_id AND c.generation = s.generation
         WHERE s.project = ? AND ${ofIds('s')} ORDER BY c.seq DESC LIMIT 1`,
        project,
        JSON.stringify(ids),
      ) as SessionRow | undefined,
    everRegistered: (ids) =>
      database.get(`SELECT 1 FROM session s WHERE ${ofIds('s')} LIMIT 1`, JSON.stringify(ids)) !== undefined,
    live: (project, ids, nowMs) =>
      connection(
        `WHERE c.project = ? AND ${ofIds('c')} AND ${isLive} ORDER BY c.seq DESC LIMIT 1`,
        project,
        JSON.stringify(ids),
        nowMs,
      ),
    allLive: (project, ids, nowMs) =>
      database
        .all(
          `SELECT ${connectionColumns} FROM connection c WHERE c.project = ? AND ${ofIds('c')} AND ${isLive}
           ORDER BY c.seq DESC`,
          project,
          JSON.stringify(ids),
          nowMs,
        )
        .map(connectionOf),
    liveOfPrincipal: (project, principal, nowMs) =>
      connection(
        `WHERE c.project = ? AND c.principal_id = ? AND ${isLive} AND c.bell <> 'none' ORDER BY c.seq DESC LIMIT 1`,
        project,
        principal,
        nowMs,
      ),
    connection: (connectionId) => connection('WHERE c.connection_id = ?', connectionId),
    last: (project, ids) =>
      connection(
        `WHERE c.project = ? AND ${ofIds('c')} ORDER BY c.seq DESC LIMIT 1`,
        project,
        JSON.stringify(ids),
      ),
    cards: (project, nowMs, count) => cards(database, project, nowMs, count).map(withoutBell),
    cardsAnywhere: (nowMs, count) => cards(database, undefined, nowMs, count),
    checkpoint: (project, principal) =>
      database.get(
        'SELECT activation_checkpoint FROM principal WHERE project = ? AND principal_id = ?',
        project,
        principal,
      )?.activation_checkpoint as number | undefined,
    open: (exceptRouter) =>
      database
        .all(
          `SELECT ${connectionColumns} FROM connection c
           WHERE c.disconnected_at IS NULL AND c.router_instance IS NOT ? ORDER BY c.seq`,
          exceptRouter ?? null,
        )
        .map(connectionOf),
  };
}

function ofPrincipal(database: Database): OfPrincipal {
  return {
    liveAnywhere: (of, nowMs) =>
      database
        .all(
          `SELECT ${connectionColumns} FROM connection c WHERE ${isLive}
             AND c.${'ids' in of ? 'session_id' : 'principal_id'} IN (SELECT value FROM json_each(?)) ORDER BY c.seq`,
          nowMs,
          JSON.stringify('ids' in of ? of.ids : of.principals),
        )
        .map(connectionOf),
    connectionsOf: (project, principal) =>
      database
        .all(
          `SELECT ${connectionColumns}, max(c.seq) AS newest FROM connection c
           WHERE c.project = ? AND c.principal_id = ? GROUP BY c.session_id ORDER BY newest`,
          project,
          principal,
        )
        .map(connectionOf),
    projectsOf: (principal, nowMs, count) =>
      database
        .all(
          `SELECT DISTINCT c.project FROM connection c
           WHERE c.principal_id = ? AND ${isLive} AND c.bell <> 'none' ORDER BY c.project LIMIT ?`,
          principal,
          nowMs,
          count,
        )
        .map((row) => row.project as string),
  };
}

function writing(database: Database): Writing {
  return {
    connect: (row) => connect(database, row),
    renew: (connectionId, leaseExpiresAtMs, workSummary) => {
      const renewed = database.run(
        'UPDATE connection SET lease_expires_at_ms = ? WHERE connection_id = ? AND disconnected_at IS NULL',
        leaseExpiresAtMs,
        connectionId,
      );
      if (renewed === 1 && workSummary !== undefined)
        database.run(
          `UPDATE session SET work_summary = nullif(?, '') WHERE (project, session_id, generation) =
             (SELECT project, session_id, generation FROM connection WHERE connection_id = ?)`,
          workSummary,
          connectionId,
        );
    },
    disconnect: (connectionId, reason, at) => {
      const ended = database.run(
        `UPDATE connection SET disconnected_at = ?, disconnect_reason = ?
         WHERE connection_id = ? AND disconnected_at IS NULL`,
        at,
        reason,
        connectionId,
      );
      const transition = reason === 'superseded' ? 'superseded' : 'disconnected';
      if (ended === 1) recordPresence(database, connectionId, transition, reason, at);
    },
  };
}

function recordPresence(
  database: Database,
  connectionId: string,
  transition: string,
  reason: string | null,
  at: string,
): void {
  database.run(
    'INSERT INTO presence (connection_id, transition, reason, recorded_at) VALUES (?, ?, ?, ?)',
    connectionId,
    transition,
    reason,
    at,
  );
}

function connect(database: Database, row: Parameters<Sessions['connect']>[0]): void {
  const { registration: r, generation, connection_id, at } = row;
  database.run(
    `INSERT OR IGNORE INTO principal
     VALUES (:project, :principal, coalesce((SELECT max(seq) FROM event WHERE project = :project), 0))`,
    { project: r.project, principal: r.principal_id },
  );
  database.run(
    'INSERT OR REPLACE INTO session VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
    r.project,
    r.session_id,
    r.principal_id,
    r.adapter_kind,
    r.bell,
    r.host_kind,
    r.work_summary ?? null,
    generation,
  );
  database.run(
    `INSERT INTO connection (connection_id, project, session_id, generation, principal_id, adapter_kind, bell,
       router_instance, lease_expires_at_ms, connected_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    connection_id,
    r.project,
    r.session_id,
    generation,
    r.principal_id,
    r.adapter_kind,
    r.bell,
    row.router_instance,
    row.lease_expires_at_ms,
    at,
  );
  recordPresence(database, connection_id, 'connected', null, at);
}

function cards(
  database: Database,
  project: string | undefined,
  nowMs: number,
  count: number,
): (Card & { bell: Bell })[] {
  const rows = database.all(
    `SELECT c.session_id, c.principal_id, s.host_kind, c.project, s.work_summary, c.generation, c.lease_expires_at_ms, c.bell
     FROM connection c JOIN session s ON s.project = c.project AND s.session_id = c.session_id
     WHERE ${project === undefined ? '' : 'c.project = ? AND '}${isLive} ORDER BY c.seq DESC LIMIT ?`,
    ...(project === undefined ? [] : [project]),
    nowMs,
    count,
  );
  return rows.map(({ lease_expires_at_ms, generation, work_summary, ...row }) => ({
    ...(row as unknown as Pick<Card, 'session_id' | 'principal_id' | 'host_kind' | 'project'> & {
      bell: Bell;
    }),
    model: null,
    work_summary: work_summary as string | null,
    active: true,
    generation: generation as number,
    lease_expires_at_ms: lease_expires_at_ms as number,
  }));
}

function withoutBell({ bell: _bell, ...card }: Card & { bell: Bell }): Card {
  return card;
}
