// The command lines of a process and of those above it, as `ps` shows them on every system.

import { execFile } from 'node:child_process';
import type { Clock } from '../ports/clock.ts';
import { limits } from '../protocol/limits.ts';
import { systemClock } from './clock.ts';

/** What `ps` prints; rejects where it cannot, or is not done in time. */
export type RunPs = (words: readonly string[], timeoutMs: number) => Promise<string>;

const runPs: RunPs = (words, timeoutMs) =>
  new Promise((resolve, reject) => {
    execFile('ps', [...words], { timeout: timeoutMs, killSignal: 'SIGKILL' }, (error, out) =>
      error ? reject(error) : resolve(out),
    );
  });

/** From `pid` itself up, at most six, and no longer than two seconds; as many as could be read. */
export async function ancestors(
  pid: number,
  run: RunPs = runPs,
  clock: Pick<Clock, 'elapsedMs'> = systemClock,
): Promise<string[]> {
  const untilMs = clock.elapsedMs() + limits.ancestryWaitMs;
  const lines: string[] = [];
  for (let next = pid; next > 0 && lines.length < limits.ancestryMax; ) {
    const leftMs = Math.ceil(untilMs - clock.elapsedMs());
    const shown =
      leftMs > 0
        ? await run(['-ww', '-o', 'ppid=,command=', '-p', String(next)], leftMs).catch(() => '')
        : '';
    const [, parent, command] = /^\s*(\d+)\s+(.*\S)/.exec(shown) ?? [];
    if (command === undefined) break;
    lines.push(command);
    next = Number(parent);
  }
  return lines;
}
