// How every process ends that could not do what it was started for: one line, exit status 1.

import { failureLine } from '../protocol/errors.ts';

/** Runs `work` with the words but `--json`, which asks for the failure as JSON. */
export async function orFail(
  words: readonly string[],
  work: (words: readonly string[]) => Promise<void>,
): Promise<void> {
  try {
    await work(words.filter((word) => word !== '--json'));
  } catch (error) {
    process.stderr.write(failureLine(error, words.includes('--json')));
    process.exitCode = 1;
  }
}
