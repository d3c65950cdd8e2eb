// What the store's rows say has happened, for the report of a run.

import type { Change } from './disk.ts';
import type { Process } from './process.ts';
import type { Tally } from './tally.ts';

const isOfAnAttempt = ({ table }: Change): boolean => table === 'attempt';

export function count(tally: Tally, changes: readonly Change[], by: Process | undefined): void {
  for (const { table, before, after } of changes) {
    if (after === undefined) continue;
    if (table === 'attempt' && before !== undefined && before.state !== after.state)
      tally.count(`attempts ${after.state}${after.failure_code === null ? '' : ` (${after.failure_code})`}`);
    if (table === 'delivery' && after.superseded_by !== null && before?.superseded_by !== after.superseded_by)
      tally.count('superseded');
    if (before !== undefined) continue;
    if (table === 'host_accept') tally.count('acceptances');
    if (table === 'host_accept' && !changes.some(isOfAnAttempt)) tally.count('acceptances, late');
    if (table === 'reservation' && by?.kind === 'listener') tally.count('reservations by a listener');
    if (table === 'fallback') tally.count('fallbacks');
    if (table === 'delivery' && after.expires_at !== null) tally.count('sent to expire');
    if (table === 'message' && after.held === 1) tally.count('held');
    if (table === 'attempt' && after.attempt_number !== 1) tally.count('handed over again');
    if (table === 'reservation')
      tally.count(after.step === 0 ? 'reservations, first' : 'reservations, reminders');
    if (table === 'listener_row') tally.count('listener rows');
    if (table === 'alias') tally.count('ids linked');
    if (table === 'presence')
      tally.count(after.reason === null ? 'registrations' : `connections ended: ${after.reason}`);
  }
}
