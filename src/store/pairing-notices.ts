import type { PairingNotice, PairingNotices } from '../ports/pairing.ts';
import type { Database } from './database.ts';
import { identity } from './identity.ts';

export function pairingNotices(database: Database): PairingNotices {
  const { chain } = identity(database);
  return {
    add: ({ sessions, ...row }) => {
      for (const session of sessions.length === 0 ? [null] : sessions)
        database.run(
          `INSERT INTO pairing_notice (session_root, kind, peer_key, name, created_ms)
           VALUES (:session, :kind, :peer_key, :name, :created_ms)`,
          { ...row, session },
        );
    },
    waiting: (sessionRoot) =>
      database.all(
        `SELECT n.seq, n.kind, n.peer_key, n.name FROM pairing_notice n
         WHERE (n.session_root = ? OR n.session_root IS NULL) AND (n.kind <> 'request' OR EXISTS
           (SELECT 1 FROM pair_request r WHERE r.peer_key = n.peer_key AND r.listed = 0))
         ORDER BY n.seq`,
        sessionRoot,
      ) as unknown as PairingNotice[],
    claim: (seqs, sessionRoot) => {
      database.run(
        'UPDATE pairing_notice SET session_root = ? WHERE seq IN (SELECT value FROM json_each(?))',
        sessionRoot,
        JSON.stringify(seqs),
      );
    },
    remove: (seqs) => {
      database.run(
        'DELETE FROM pairing_notice WHERE seq IN (SELECT value FROM json_each(?))',
        JSON.stringify(seqs),
      );
    },
    removeOf: (peerKey) => {
      database.run('DELETE FROM pairing_notice WHERE peer_key = ?', peerKey);
    },
    expire: (beforeMs) => {
      database.run('DELETE FROM pairing_notice WHERE created_ms < ?', beforeMs);
    },
    pausedUntilMs: (sessionRoot) =>
      (database.get('SELECT until_ms FROM pairing_pause WHERE session_root = ?', sessionRoot)?.until_ms ??
        0) as number,
    pause: (sessionRoot, untilMs) => {
      database.run('INSERT OR REPLACE INTO pairing_pause VALUES (?, ?)', sessionRoot, untilMs);
    },
    audience: (nowMs) => {
      const live = database.all(
        `SELECT DISTINCT session_id FROM connection
         WHERE disconnected_at IS NULL AND lease_expires_at_ms > ? AND bell <> 'none' ORDER BY session_id`,
        nowMs,
      );
      return [...new Set(live.map((row) => chain(row.session_id as string)[0] as string))];
    },
  };
}
