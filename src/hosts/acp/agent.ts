// The agent's own process: started with an argument vector, in a group of its own, and ended with all that it started there.

import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import type { Clock } from '../../ports/clock.ts';

/** Since the end began. */
const terminateMs = 2_000;
const killMs = 5_000;
/** What a killed process takes to be gone; one that nobody reaps is waited for no longer. */
const goneMs = 1_000;
const lookMs = 25;

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
}

export function startAgent({ command, directory, environment, clock }: AgentStart): AgentProcess {
  const [program = '', ...words] = command;
  const child = spawn(program, words, {
    cwd: directory,
    env: environment,
    // What it says on stderr is said to whoever started it, and is nothing of ours.
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true,
  });
  const input = child.stdin as Writable;
  // A broken pipe shows as the end of the process.
  input.on('error', () => {});
  return {
    input,
    output: child.stdout as Readable,
    ended: endOf(child),
    end: (beganMs) => endGroup({ child, input, clock, beganMs }),
  };
}

function endOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once('error', (error: NodeJS.ErrnoException) =>
      resolve(`cannot be started (${error.code ?? error.name})`),
    );
    child.once('exit', (code, signal) =>
      resolve(signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`),
    );
  });
}

interface Ending {
  child: ChildProcess;
  input: Writable;
  clock: Clock;
  beganMs: number;
}

async function endGroup({ child, input, clock, beganMs }: Ending): Promise<void> {
  const { pid } = child;
  if (pid === undefined) return;
  input.end();
  let sent: NodeJS.Signals | undefined;
  while (groupRuns(pid)) {
    const waitedMs = clock.elapsedMs() - beganMs;
    if (waitedMs >= killMs + goneMs) return;
    const due = waitedMs >= killMs ? 'SIGKILL' : waitedMs >= terminateMs ? 'SIGTERM' : undefined;
    if (due !== sent && due !== undefined) signal(pid, due);
    sent = due;
    await new Promise<void>((resolve) => clock.after(lookMs, resolve));
  }
}

const groupRuns = (pid: number): boolean => signal(pid, 0);

/** @returns whether anybody is left in the group */
function signal(pid: number, name: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-pid, name);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
