// `codex queue`: puts a notice in the queue of one thread, which that thread's own process takes from there. What the command
// says of its failure is read here once.

import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import type { Clock } from '../../ports/clock.ts';
import type { ErrorCode } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { guardGroup, signalGroup } from '../process-group.ts';

/** The program of a thread's own Codex, and what it needs to know of its home. */
export interface CodexProgram {
  file: string;
  /** The whole environment that it is given. */
  environment: Readonly<Record<string, string>>;
}

export type Queued =
  /** The id that the command printed, if any. */
  | { outcome: 'queued'; submission_id?: string }
  | { outcome: 'rejected'; code: ErrorCode; permanent: boolean }
  /** Ended before it said anything: the host may have taken it. */
  | { outcome: 'unknown'; code: ErrorCode };

/** An answer is two lines. */
const outputCharactersMax = 16_384;

/** From its end to that of its output. */
const outputWaitMs = 500;

/** Ended with its whole process group when its time is up. */
export function queueNotice(
  clock: Clock,
  { file, environment }: CodexProgram,
  { thread, notice, ended }: { thread: string; notice: string; ended?: AbortSignal },
): Promise<Queued> {
  return new Promise((resolve) => {
    const words = ['queue', '--thread', thread, '--message', notice];
    // An upgrade may have moved it.
    const program = isAbsolute(file) && !existsSync(file) ? 'codex' : file;
    const child = spawn(program, words, {
      cwd: '/',
      env: { ...environment },
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    // It would outlive a companion that is killed meanwhile. Takes 1 ms of a ring.
    const unguard = child.pid === undefined ? undefined : guardGroup(child.pid);
    let said = '';
    let complaint = '';
    let cancelRest = (): void => {};
    child.stdout.on('data', (chunk: Buffer) => {
      if (said.length < outputCharactersMax) said += chunk.toString('utf8');
    });
    child.stderr.on('data', (chunk: Buffer) => {
      if (complaint.length < outputCharactersMax) complaint += chunk.toString('utf8');
    });
    const settle = (queued: Queued): void => {
      cancel();
      cancelRest();
      for (const output of [child.stdout, child.stderr]) output.destroy();
      ended?.removeEventListener('abort', giveUp);
      unguard?.();
      resolve(queued);
    };
    const giveUp = (): void => {
      if (child.pid !== undefined) signalGroup(child.pid, 'SIGKILL');
      settle({ outcome: 'unknown', code: 'codex_queue_timeout' });
    };
    const cancel = clock.after(limits.codexQueueWaitMs, giveUp);
    ended?.addEventListener('abort', giveUp);
    child.on('error', () =>
      settle({ outcome: 'rejected', code: 'codex_queue_process_failed', permanent: true }),
    );
    // What it left running may hold its output open; how it ended is known.
    child.on('exit', (code) => {
      cancelRest = clock.after(outputWaitMs, () => settle(read(code, said, complaint)));
    });
    child.on('close', (code) => settle(read(code, said, complaint)));
  });
}

const submission = /^Queued message ([0-9a-f-]{36}) for thread /m;

/** Measured with 0.171.0; later words for the same are `codex_queue_rejected`. */
const refusals: readonly [said: RegExp, code: ErrorCode, permanent: boolean][] = [
  [/no rollout found|no active session found/i, 'thread_not_found', true],
  [/ephemeral thread/i, 'thread_unavailable', true],
  [/queue cannot contain more than/i, 'adapter_queue_full', false],
];

function read(code: number | null, said: string, complaint: string): Queued {
  if (code === 0) {
    const submission_id = submission.exec(said)?.[1];
    return { outcome: 'queued', ...(submission_id !== undefined && { submission_id }) };
  }
  // Killed by somebody else, or it broke: Codex may have stored the item before. Where it says no, it ends with 1 or 2.
  if (code === null || code > 2) return { outcome: 'unknown', code: 'codex_queue_process_failed' };
  if (code === 2) return { outcome: 'rejected', code: 'codex_queue_process_failed', permanent: false };
  const known = refusals.find(([words]) => words.test(complaint) || words.test(said));
  if (known === undefined) return { outcome: 'rejected', code: 'codex_queue_rejected', permanent: false };
  return { outcome: 'rejected', code: known[1], permanent: known[2] };
}
