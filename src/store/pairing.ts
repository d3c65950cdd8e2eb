import type {
  ControlJob,
  ControlJobs,
  PairAsked,
  PairAskedRow,
  Pairing,
  PairRequestRow,
  PairRequests,
} from '../ports/pairing.ts';
import { limits } from '../protocol/limits.ts';
import { type Database, literal, type Row } from './database.ts';
import { pairingNotices } from './pairing-notices.ts';

export function pairing(database: Database): Pairing {
  return {
    requests: requests(database),
    asked: asked(database),
    jobs: jobs(database),
    notices: pairingNotices(database),
    announced: () => database.get('SELECT route FROM announced_route')?.route as string | undefined,
    announce: (route) => {
      database.run('INSERT OR REPLACE INTO announced_route (one, route) VALUES (1, ?)', route);
    },
  };
}

const requestColumns = 'peer_key, request_id, name, device, relays, suites, arrived_ms, listed';

function requestOf({ relays, suites, listed, ...row }: Row): PairRequestRow {
  return {
    ...(row as unknown as Omit<PairRequestRow, 'relays' | 'suites' | 'listed'>),
    relays: JSON.parse(relays as string) as string[],
    suites: JSON.parse(suites as string) as number[],
    listed: listed === 1,
  };
}

function requests(database: Database): PairRequests {
  return {
    all: () => database.all(`SELECT ${requestColumns} FROM pair_request ORDER BY seq`).map(requestOf),
    of: (peerKey) => {
      const row = database.get(`SELECT ${requestColumns} FROM pair_request WHERE peer_key = ?`, peerKey);
      return row && requestOf(row);
    },
    count: () => database.get('SELECT count(*) AS n FROM pair_request')?.n as number,
    put: ({ relays, suites, ...row }) => {
      database.run(
        `INSERT INTO pair_request (peer_key, request_id, name, device, relays, suites, arrived_ms)
         VALUES (:peer_key, :request_id, :name, :device, :relays, :suites, :arrived_ms)
         ON CONFLICT (peer_key) DO UPDATE SET request_id = excluded.request_id, name = excluded.name,
           device = excluded.device, relays = excluded.relays, suites = excluded.suites, arrived_ms = excluded.arrived_ms`,
        { ...row, relays: JSON.stringify(relays), suites: JSON.stringify(suites) },
      );
    },
    markListed: (peerKeys) => {
      database.run(
        'UPDATE pair_request SET listed = 1 WHERE peer_key IN (SELECT value FROM json_each(?))',
        JSON.stringify(peerKeys),
      );
    },
    remove: (peerKey) => {
      database.run('DELETE FROM pair_request WHERE peer_key = ?', peerKey);
    },
    expire: (beforeMs) => {
      database.run('DELETE FROM pair_request WHERE arrived_ms < ?', beforeMs);
    },
  };
}

function asked(database: Database): PairAsked {
  const columns = 'peer_key, request_id, name, asked_ms';
  return {
    all: () =>
      database.all(
        `SELECT ${columns} FROM pair_asked ORDER BY asked_ms, peer_key`,
      ) as unknown as PairAskedRow[],
    of: (peerKey) =>
      database.get(`SELECT ${columns} FROM pair_asked WHERE peer_key = ?`, peerKey) as unknown as
        | PairAskedRow
        | undefined,
    put: (row) => {
      database.run(
        `INSERT OR REPLACE INTO pair_asked (${columns}) VALUES (:peer_key, :request_id, :name, :asked_ms)`,
        { ...row },
      );
    },
    remove: (peerKey) => {
      database.run('DELETE FROM pair_asked WHERE peer_key = ?', peerKey);
    },
    expire: (beforeMs) => {
      database.run('DELETE FROM pair_asked WHERE asked_ms < ?', beforeMs);
    },
  };
}

const jobColumns =
  'seq, kind, peer_key, queue, relays, record_id, request_id, name, secret, attempts, next_ms, expires_ms, last_error, accepted_ms';

const jobOf = ({ relays, ...row }: Row): ControlJob => ({
  ...(row as unknown as Omit<ControlJob, 'relays'>),
  relays: JSON.parse(relays as string) as string[],
});

function jobs(database: Database): ControlJobs {
  return {
    all: () => database.all(`SELECT ${jobColumns} FROM control_job ORDER BY seq`).map(jobOf),
    due: (nowMs, count) =>
      database
        .all(
          `SELECT ${jobColumns} FROM control_job WHERE (next_ms <= :now OR next_ms > iif(accepted_ms IS NULL, :far, :farther)) AND expires_ms > :now
           ORDER BY next_ms, seq LIMIT ${literal(count)}`,
          {
            now: nowMs,
            far: nowMs + 2 * limits.controlRetryMsMax,
            farther: nowMs + 2 * limits.controlRepeatMs,
          },
        )
        .map(jobOf),
    nextDueMs: (nowMs) =>
      (database.get(
        'SELECT min(next_ms) AS next FROM control_job WHERE next_ms IS NOT NULL AND expires_ms > ?',
        nowMs,
      )?.next ?? undefined) as number | undefined,
    countOfPairing: () =>
      database.get(`SELECT count(*) AS n FROM control_job WHERE kind <> 'route' AND accepted_ms IS NULL`)
        ?.n as number,
    of: (kind, peerKey, queue) => {
      const row = database.get(
        `SELECT ${jobColumns} FROM control_job WHERE kind = ? AND peer_key = ? AND queue = ?`,
        kind,
        peerKey,
        queue,
      );
      return row && jobOf(row);
    },
    put: ({ relays, ...row }) => {
      database.run(
        `INSERT OR REPLACE INTO control_job
           (kind, peer_key, queue, relays, record_id, request_id, name, secret, next_ms, expires_ms)
         VALUES (:kind, :peer_key, :queue, :relays, :record_id, :request_id, :name, :secret, :next_ms, :expires_ms)`,
        { ...row, relays: JSON.stringify(relays) },
      );
    },
    retry: (seq, { attempts, next_ms, last_error }) => {
      database.run(
        'UPDATE control_job SET attempts = ?, next_ms = ?, last_error = ? WHERE seq = ?',
        attempts,
        next_ms,
        last_error,
        seq,
      );
    },
    accepted: (seq, { accepted_ms, next_ms }) => {
      database.run(
        'UPDATE control_job SET attempts = 0, last_error = NULL, accepted_ms = ?, next_ms = ? WHERE seq = ?',
        accepted_ms,
        next_ms,
        seq,
      );
    },
    remove: (seq) => {
      database.run('DELETE FROM control_job WHERE seq = ?', seq);
    },
    removeTo: (peerKey, kind) => {
      if (kind === undefined) database.run('DELETE FROM control_job WHERE peer_key = ?', peerKey);
      else database.run('DELETE FROM control_job WHERE peer_key = ? AND kind = ?', peerKey, kind);
    },
    expire: (nowMs) => {
      database.run('DELETE FROM control_job WHERE expires_ms <= ?', nowMs);
    },
  };
}
