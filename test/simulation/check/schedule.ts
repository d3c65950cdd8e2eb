// A reservation that was not answered is followed by one a step longer; the first after a release is the shortest.

import type { Checker, MakeChecker } from '../checker.ts';

const stepMs = [30_000, 60_000, 120_000, 240_000, 300_000];

export const remindersFollowTheSchedule: MakeChecker = ({ facts, broken }): Checker => ({
  name: 'reminders follow the schedule',
  beforeCommit: (changes) => {
    for (const { table, before, after } of changes) {
      if (table !== 'reservation' || before !== undefined || after === undefined) continue;
      const last = facts.newest.get(after.session_root as string);
      const answered = last === undefined || facts.coveredWaiting(last).length === 0;
      const step = answered ? 0 : Math.min(last.step + 1, stepMs.length - 1);
      const lasts = (after.expires_at_ms as number) - (after.rung_at_ms as number);
      if (after.step !== step || lasts !== stepMs[step])
        broken(
          `${after.notification_id} has step ${after.step} and lasts ${lasts} ms; its turn is step ${step}`,
        );
    }
  },
});
