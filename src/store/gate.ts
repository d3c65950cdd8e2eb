import type { Gate } from '../ports/peers.ts';
import type { Database } from './database.ts';
import { instantOf } from './instant.ts';

export function gate(database: Database): Gate {
  return {
    refused: (step, at) => {
      database.run(
        `INSERT INTO gate_refusal (step, count, last_at) VALUES (?, 1, ?)
         ON CONFLICT (step) DO UPDATE SET count = count + 1, last_at = excluded.last_at`,
        step,
        at,
      );
    },
    counts: () =>
      database.all('SELECT step, count, last_at FROM gate_refusal ORDER BY step').map((row) => ({
        step: row.step as string,
        count: row.count as number,
        last_at: instantOf(row.last_at as string),
      })),
  };
}
