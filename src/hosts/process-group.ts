// A process that was started in a group of its own, with all that it starts there: how it ended, and how the group is ended.

import { type ChildProcess, spawn } from 'node:child_process';
import type { Clock } from '../ports/clock.ts';
import { quoted } from '../protocol/json.ts';

/** What a killed process takes to be gone; one that nobody reaps is waited for no longer. */
const goneMs = 1_000;
const lookMs = 25;

/** Once the child runs no more, or could not be started: in words that end the sentence "it …". */
export function endOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once('error', (error: NodeJS.ErrnoException) =>
      resolve(`cannot be started (${error.code ?? error.name}: ${quoted(child.spawnfile)})`),
    );
    child.once('exit', (code, name) =>
      resolve(name === null ? `ended with exit code ${code}` : `was ended by ${name}`),
    );
  });
}

/** Reads a word and is done; where its end comes instead, nobody is left who could end the group. */
const guard = 'read -r _ && exit; kill -s TERM -- "-$1"; sleep 3; kill -s KILL -- "-$1"';

/**
 * Ends the group when this process has died without ending it. A shell waits for that, in no group of ours.
 * @returns to be called when the group has ended
 */
export function guardGroup(pid: number): () => void {
  const shell = spawn('/bin/sh', ['-c', guard, 'sh', String(pid)], {
    cwd: '/',
    env: { PATH: '/usr/bin:/bin' },
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  // Without it all goes on as before.
  shell.on('error', () => {});
  shell.stdin.on('error', () => {});
  shell.unref();
  return () => void shell.stdin.end('ended\n');
}

/** Since `beganMs` of the clock's own count. */
export interface GroupEnd {
  beganMs: number;
  terminateMs: number;
  killMs: number;
}

/** Ends a group, the harder the longer it takes. Resolves when none of it is left, or the last blow has been struck in vain. */
export async function endGroup(
  pid: number,
  clock: Clock,
  { beganMs, terminateMs, killMs }: GroupEnd,
): Promise<void> {
  let sent: NodeJS.Signals | undefined;
  while (signalGroup(pid, 0)) {
    const waitedMs = clock.elapsedMs() - beganMs;
    if (waitedMs >= killMs + goneMs) return;
    const due = waitedMs >= killMs ? 'SIGKILL' : waitedMs >= terminateMs ? 'SIGTERM' : undefined;
    if (due !== sent && due !== undefined) signalGroup(pid, due);
    sent = due;
    await new Promise<void>((resolve) => void clock.after(lookMs, resolve));
  }
}

/** @returns whether anybody is left in the group */
export function signalGroup(pid: number, name: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-pid, name);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
