// What became of a hook: one record each, and what it printed. Reasons are codes and counts.

import { Fault } from '../../protocol/errors.ts';

export interface Outcome {
  outcome: 'wrote' | 'notified' | 'skipped' | 'error';
  reason: string;
}

/** Its code, or the name of an error that has none: never its text. */
export const codeOf = (error: unknown): string =>
  error instanceof Fault ? error.code : error instanceof Error ? error.name : typeof error;

/** The fault of one part of a hook: `inbox: uncaught store_unreadable`. */
export const faultOf = (part: string, error: unknown): Outcome => ({
  outcome: 'error',
  reason: `${part}: uncaught ${codeOf(error)}`,
});

/** For stderr, where a person looks who asks why nothing was said. */
export const faultLine = (part: string, error: unknown): string => `postbell: ${part}: ${codeOf(error)}\n`;

/** Text for the model, and one line for the person, in the host's own form. Empty where there is neither. */
export function hookAnswer(event: string, context: string, banner?: string): string {
  if (context === '' && banner === undefined) return '';
  return JSON.stringify({
    ...(banner !== undefined && { systemMessage: banner }),
    ...(context !== '' && { hookSpecificOutput: { hookEventName: event, additionalContext: context } }),
  });
}
