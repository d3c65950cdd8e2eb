// How a long-lived process ends: once, in order, with status 0, by whichever signal or other cause comes first.

import { say } from '../platform/stderr.ts';
import { replacedLine } from '../protocol/session.ts';

export const endingSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** @returns ends the process as a signal would */
export function endOnSignal(close: () => Promise<void>): () => void {
  let ending = false;
  const end = (): void => {
    if (ending) return;
    ending = true;
    void close().finally(() => process.exit(0));
  };
  for (const signal of endingSignals) process.on(signal, end);
  return end;
}

/** Of a process that serves one session and nothing else, when that has a newer connection. */
export function endReplaced(end: () => void): void {
  say(`${replacedLine}\n`);
  end();
}
