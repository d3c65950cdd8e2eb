import type { DeviceRow, Devices } from '../ports/peers.ts';
import type { Database, Row } from './database.ts';

const columns = 'peer_key, device, relays, suites, heard_ms, looked_ms, age_ms, gone, card_ms, card';

export function devices(database: Database): Devices {
  return {
    of: (peerKey) =>
      database
        .all(`SELECT ${columns} FROM peer_device WHERE peer_key = ? ORDER BY heard_ms DESC, device`, peerKey)
        .map(deviceOf),
    get: (peerKey, device) => {
      const row = database.get(
        `SELECT ${columns} FROM peer_device WHERE peer_key = ? AND device = ?`,
        peerKey,
        device,
      );
      return row && deviceOf(row);
    },
    heard: ({ peer_key, device, heard_ms, route }) => {
      database.run(
        `INSERT INTO peer_device (peer_key, device, heard_ms) VALUES (?, ?, ?)
         ON CONFLICT (peer_key, device) DO UPDATE SET heard_ms = max(heard_ms, excluded.heard_ms)`,
        peer_key,
        device,
        heard_ms,
      );
      if (route !== undefined)
        database.run(
          `UPDATE peer_device SET relays = :relays, suites = :suites, route_ms = :heard_ms
           WHERE peer_key = :peer_key AND device = :device AND route_ms <= :heard_ms`,
          {
            relays: JSON.stringify(route.relays),
            suites: JSON.stringify(route.suites),
            heard_ms,
            peer_key,
            device,
          },
        );
    },
    looked: ({ peer_key, device, looked_ms, age_ms, gone }) => {
      database.run(
        'UPDATE peer_device SET looked_ms = ?, age_ms = ?, gone = ? WHERE peer_key = ? AND device = ?',
        looked_ms,
        age_ms,
        gone ? 1 : 0,
        peer_key,
        device,
      );
    },
    card: ({ peer_key, device, card_ms, sessions }) => {
      database.run(
        'UPDATE peer_device SET card_ms = ?, card = ? WHERE peer_key = ? AND device = ?',
        card_ms,
        JSON.stringify(sessions),
        peer_key,
        device,
      );
    },
    forget: (peerKey) => {
      database.run('DELETE FROM peer_device WHERE peer_key = ?', peerKey);
    },
  };
}

function deviceOf({ relays, suites, gone, card, ...row }: Row): DeviceRow {
  return {
    ...(row as unknown as Omit<DeviceRow, 'relays' | 'suites' | 'gone' | 'sessions'>),
    relays: JSON.parse(relays as string) as string[],
    suites: JSON.parse(suites as string) as number[],
    gone: gone === 1,
    sessions: card === null ? [] : (JSON.parse(card as string) as DeviceRow['sessions']),
  };
}
