// How a long-lived process ends: once, in order, by whichever signal or other cause comes first. With status 0, but 1 where a
// failure came before it, or the close itself fails.

import { say } from '../platform/stderr.ts';
import { failureLine } from '../protocol/errors.ts';
import { replacedLine } from '../protocol/session.ts';

export const endingSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** @returns ends the process as a signal would */
export function endOnSignal(close: () => Promise<void>): () => void {
  let ending = false;
  const end = (): void => {
    if (ending) return;
    ending = true;
    close().then(
      () => process.exit(),
      (error: unknown) => {
        say(failureLine(error, false));
        process.exit(1);
      },
    );
  };
  for (const signal of endingSignals) process.on(signal, end);
  return end;
}

/** Of a process that serves one session and nothing else, when that has a newer connection: no failure. */
export function endReplaced(end: () => void): void {
  say(`${replacedLine}\n`);
  end();
}
