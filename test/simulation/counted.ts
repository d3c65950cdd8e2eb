// What the store's rows say has happened, for the report of a run.

import type { Change } from './disk.ts';
import type { Tally } from './tally.ts';

export function count(tally: Tally, changes: readonly Change[]): void {
  for (const { table, before, after } of changes) {
    if (after === undefined) continue;
    if (table === 'attempt' && before !== undefined && before.state !== after.state)
      tally.count(`attempts ${after.state}${after.failure_code === null ? '' : ` (${after.failure_code})`}`);
    if (before !== undefined) continue;
    if (table === 'host_accept') tally.count('acceptances');
    if (table === 'reservation')
      tally.count(after.step === 0 ? 'reservations, first' : 'reservations, reminders');
    if (table === 'listener_row') tally.count('listener rows');
    if (table === 'alias') tally.count('ids linked');
    if (table === 'presence')
      tally.count(after.reason === null ? 'registrations' : `connections ended: ${after.reason}`);
  }
}
