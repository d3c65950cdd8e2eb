// Each registration of a session has a higher generation than the last.

import type { Checker, MakeChecker } from '../checker.ts';

export const generationsOnlyRise: MakeChecker = ({ broken }): Checker => {
  const highest = new Map<string, number>();
  return {
    name: 'generations only rise',
    beforeCommit: (changes) => {
      for (const { table, before, after } of changes) {
        if ((table !== 'connection' && table !== 'session') || after === undefined) continue;
        const key = `${after.project} ${after.session_id}`;
        const generation = after.generation as number;
        const last = highest.get(key) ?? 0;
        if (table === 'session' || before !== undefined) {
          if (before === undefined && generation < last)
            broken(`${key} goes back to generation ${generation}`);
          continue;
        }
        if (generation <= last) broken(`${key} has generation ${generation} after ${last}`);
        highest.set(key, Math.max(last, generation));
      }
    },
  };
};
