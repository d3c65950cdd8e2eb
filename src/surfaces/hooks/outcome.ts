// What became of a hook: one record each, and what it printed. Reasons are codes and counts.

import { Fault } from '../../protocol/errors.ts';
import type { HookOutcome } from '../../protocol/hook-outcome.ts';

/** What a hook has to say, and what is recorded of it. */
export interface Said {
  stdout: string;
  stderr: string;
  outcome: HookOutcome;
}

/** Its code, or the name of an error that has none: never its text. */
export const codeOf = (error: unknown): string =>
  error instanceof Fault ? error.code : error instanceof Error ? error.name : typeof error;

/** The fault of one part of a hook: `inbox: uncaught store_unreadable`. */
export const faultOf = (part: string, error: unknown): HookOutcome => ({
  outcome: 'error',
  reason: `${part}: uncaught ${codeOf(error)}`,
});

/** For stderr, where a person looks who asks why nothing was said. */
export const faultLine = (part: string, error: unknown): string => `postbell: ${part}: ${codeOf(error)}\n`;

/** The line of a recipient that does not count. */
export const refusalLine = (ignored: string | undefined): string =>
  ignored === undefined ? '' : `${ignored}\n`;

/** Of a hook that said so many lines. */
export function outcomeOf(lines: number, ignored: string | undefined): HookOutcome {
  if (ignored !== undefined) return { outcome: 'notified', reason: 'recipient refused' };
  return lines > 0
    ? { outcome: 'notified', reason: `lines: ${lines}` }
    : { outcome: 'skipped', reason: 'nothing waits' };
}

/** Text for the model, and one line for the person, in the host's own form. Empty where there is neither. */
export function hookAnswer(event: string, context: string, banner?: string): string {
  if (context === '' && banner === undefined) return '';
  return JSON.stringify({
    ...(banner !== undefined && { systemMessage: banner }),
    ...(context !== '' && { hookSpecificOutput: { hookEventName: event, additionalContext: context } }),
  });
}

/** Keeps the turn from ending, in the host's own form. */
export const blockAnswer = (reason: string): string => JSON.stringify({ decision: 'block', reason });
