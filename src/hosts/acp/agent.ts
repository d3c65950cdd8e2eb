// The agent's own process: started with an argument vector, in a group of its own, and ended with all that it started there.

import { spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import type { Clock } from '../../ports/clock.ts';
import { endGroup, endOf, guardGroup } from '../process-group.ts';

/** Since the end began. */
const terminateMs = 2_000;
const killMs = 5_000;

export interface AgentProcess {
  input: Writable;
  output: Readable;
  /** Once it runs no more, or where it could not be started: in words that end the sentence "the agent …". */
  ended: Promise<string>;
  /**
   * Ends its input, then all of its group, the harder the longer it takes since `beganMs` of the clock's own count. Resolves
   * when none is left.
   */
  end(beganMs: number): Promise<void>;
}

export interface AgentStart {
  command: readonly string[];
  directory: string;
  environment: Readonly<Record<string, string>>;
  clock: Clock;
  /** What it says on stderr, until it is ended. */
  complain(text: string): void;
}

export function startAgent({ command, directory, environment, clock, complain }: AgentStart): AgentProcess {
  const [program = '', ...words] = command;
  const child = spawn(program, words, {
    cwd: directory,
    env: environment,
    stdio: 'pipe',
    detached: true,
  });
  const input = child.stdin;
  // A broken pipe shows as the end of the process.
  input.on('error', () => {});
  // What it says there is said to whoever started it, and is nothing of ours.
  child.stderr.setEncoding('utf8').on('data', complain);
  const unguard = child.pid === undefined ? undefined : guardGroup(child.pid);
  return {
    input,
    output: child.stdout,
    ended: endOf(child),
    end: async (beganMs) => {
      if (child.pid === undefined) return;
      // Some say then all that they held back.
      child.stderr.off('data', complain).resume();
      input.end();
      await endGroup(child.pid, clock, { beganMs, terminateMs, killMs });
      unguard?.();
    },
  };
}
