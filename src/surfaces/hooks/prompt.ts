// UserPromptSubmit: what waits, in lines before the model reads the prompt. Costs no turn and is no ring.

import type { Clock } from '../../ports/clock.ts';
import { boundedLines, refusedRecipient } from '../../protocol/reminder.ts';
import { faultLine, faultOf, hookAnswer, type Outcome } from './outcome.ts';
import { type Reminded, readLines, type StoreOrFault } from './remind.ts';

export interface Said {
  stdout: string;
  stderr: string;
  outcome: Outcome;
}

export function prompt(store: StoreOrFault, clock: Clock, { addressee, ignored }: Reminded): Said {
  const { lines, fault } = readLines(store, clock, addressee);
  return {
    stdout: hookAnswer('UserPromptSubmit', boundedLines(lines)),
    stderr: [
      ...(ignored === undefined ? [] : [`${refusedRecipient(ignored)}\n`]),
      ...(fault === undefined ? [] : [faultLine('inbox', fault)]),
    ].join(''),
    outcome: outcomeOf(lines.length, ignored, fault),
  };
}

export function outcomeOf(lines: number, ignored: string | undefined, fault: unknown): Outcome {
  if (fault !== undefined) return faultOf('inbox', fault);
  if (ignored !== undefined) return { outcome: 'notified', reason: 'recipient refused' };
  return lines > 0
    ? { outcome: 'notified', reason: `lines: ${lines}` }
    : { outcome: 'skipped', reason: 'nothing waits' };
}
