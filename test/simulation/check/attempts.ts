// What an attempt came to is written once.

import type { Checker, MakeChecker } from '../checker.ts';

export const finishedAttemptsNeverChange: MakeChecker = ({ broken }): Checker => ({
  name: 'finished attempts never change',
  beforeCommit: (changes) => {
    for (const { table, before, after } of changes)
      if (table === 'attempt' && before !== undefined && before.state !== 'started')
        broken(`${before.attempt_id} was ${before.state}, and becomes ${after?.state}`);
  },
});
