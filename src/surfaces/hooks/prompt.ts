// UserPromptSubmit: what waits, in lines before the model reads the prompt. Costs no turn and is no ring.

import type { Clock } from '../../ports/clock.ts';
import { boundedLines } from '../../protocol/reminder.ts';
import { faultLine, faultOf, hookAnswer, outcomeOf, refusalLine, type Said } from './outcome.ts';
import { type Reminded, readLines, type StoreOrFault } from './remind.ts';

export function prompt(store: StoreOrFault, clock: Clock, { addressee, ignored }: Reminded): Said {
  const { lines, fault } = readLines(store, clock, addressee);
  return {
    stdout: hookAnswer('UserPromptSubmit', boundedLines(lines)),
    stderr: refusalLine(ignored) + (fault === undefined ? '' : faultLine('inbox', fault)),
    outcome: fault === undefined ? outcomeOf(lines.length, ignored) : faultOf('inbox', fault),
  };
}
