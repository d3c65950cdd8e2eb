// How every process ends that could not do what it was started for: one line, exit status 1.

import { say } from '../platform/stderr.ts';
import { describeError, Fault, failureLine } from '../protocol/errors.ts';

/** Runs `work` with the words but `--json`, which asks for the failure as JSON. */
export async function orFail(
  words: readonly string[],
  work: (words: readonly string[]) => Promise<void>,
): Promise<void> {
  try {
    await work(words.filter((word) => word !== '--json'));
  } catch (error) {
    say(failureLine(error, words.includes('--json')));
    process.exitCode = 1;
  }
}

/** What failed beside the work goes on stderr as its code. */
export function note(error: unknown): void {
  say(`postbell: ${describeError(error).code}\n`);
}

/**
 * Where nobody reads the answer, or the disk that takes it is full: one line and status 1, as for any other failure. What
 * was asked for may be done all the same.
 */
export function failWithoutOutput(words: readonly string[]): void {
  process.stdout.once('error', (error: NodeJS.ErrnoException) => {
    const text = `the answer cannot be written (${error.code}); what was asked for may be done`;
    say(failureLine(new Fault('internal_error', text, { cause: error }), words.includes('--json')));
    process.exit(1);
  });
}
