import type { RouterRun, Routers } from '../ports/presence.ts';
import type { Database } from './database.ts';

export function routers(database: Database): Routers {
  return {
    began: ({ instance, pid, version, socket, started_at }) => {
      database.run(
        'INSERT INTO router_run (instance, pid, version, socket, started_at) VALUES (?, ?, ?, ?, ?)',
        instance,
        pid,
        version,
        socket,
        started_at,
      );
    },
    newest: () =>
      database.get(
        'SELECT instance, pid, version, socket, started_at FROM router_run ORDER BY seq DESC LIMIT 1',
      ) as RouterRun | undefined,
    supersede: (version, atMs) => {
      database.run('INSERT OR REPLACE INTO router_superseded VALUES (?, ?)', version, atMs);
    },
    supersededAtMs: (version) =>
      database.get('SELECT superseded_at_ms FROM router_superseded WHERE version = ?', version)
        ?.superseded_at_ms as number | undefined,
  };
}
