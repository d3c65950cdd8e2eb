// How a long-lived process ends: once, in order, by whichever signal or other cause comes first. With status 0, but 1 where a
// failure came before it, or the close itself fails.

import { say } from '../platform/stderr.ts';
import type { Clock } from '../ports/clock.ts';
import type { Wake } from '../ports/wake.ts';
import { untilBeat } from '../protocol/beat.ts';
import { failureLine } from '../protocol/errors.ts';
import { replacedLine } from '../protocol/session.ts';
import type { HostProcess } from '../sessions/alias.ts';
import { stillRuns } from './identity.ts';

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

/** How often a server looks for its host without a cause. */
const hostLookMs = 60_000;

/**
 * Ends a server whose host has gone though the pipe to it stays open, as a child of the host may keep it: it looks at each
 * touch, which a listener makes that finds its host gone, and once a minute.
 */
export function endWithHost(
  { clock, wake }: { clock: Clock; wake: Pick<Wake, 'watch'> },
  host: HostProcess | undefined,
  end: () => void,
): () => void {
  if (host === undefined) return () => {};
  let cancel = (): void => {};
  const look = (): void => {
    cancel();
    if (stillRuns(host)) cancel = clock.after(untilBeat(clock.elapsedMs(), hostLookMs), look);
    else end();
  };
  const unwatch = wake.watch(look);
  // Not at once: what the caller ends by uses what this returns.
  cancel = clock.after(0, look);
  return () => {
    cancel();
    unwatch();
  };
}
