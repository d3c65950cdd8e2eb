// An app-server of our own: on a private socket, in a process group of its own, ended with all that it started there.

import { spawn } from 'node:child_process';
import { lstatSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import type { Clock } from '../../ports/clock.ts';
import { Fault } from '../../protocol/errors.ts';
import { type AppServer, type AppServerOptions, connectAppServer } from './app-server.ts';

const lookMs = 50;
/** A loaded machine takes seconds to start it. */
const startWaitMs = 30_000;
/** Codex lets a running turn end first, which may take for ever. */
const killAfterMs = 2_000;
/** What a killed process takes to be gone. */
const goneMs = 1_000;

export interface OwnServer {
  pid: number | undefined;
  /** Once it runs no more, or could not be started: in words that end the sentence "Codex …". */
  ended: Promise<string>;
  end(): Promise<void>;
}

export interface OwnServerStart {
  program: string;
  socketPath: string;
  directory: string;
  environment: Readonly<Record<string, string | undefined>>;
  clock: Clock;
}

/** Fault `socket_path_occupied` where something lies there: it is not ours to remove. */
export function startOwnServer(start: OwnServerStart): OwnServer {
  const { program, socketPath, directory, environment, clock } = start;
  if (lstatSync(socketPath, { throwIfNoEntry: false }) !== undefined)
    throw new Fault('socket_path_occupied', `something lies at ${socketPath}`);
  const child = spawn(program, ['app-server', '--listen', `unix://${socketPath}`], {
    cwd: directory,
    env: environment as NodeJS.ProcessEnv,
    stdio: 'ignore',
    detached: true,
  });
  const ended = new Promise<string>((resolve) => {
    child.once('error', (error: NodeJS.ErrnoException) =>
      resolve(`cannot be started (${error.code ?? error.name})`),
    );
    child.once('exit', (code, name) =>
      resolve(name === null ? `ended with exit code ${code}` : `was ended by ${name}`),
    );
  });
  return {
    pid: child.pid,
    ended,
    end: async () => {
      if (child.pid !== undefined) await endGroup(child.pid, clock);
      rmSync(socketPath, { force: true });
    },
  };
}

/** Undefined where it ended first, or was not there in time. */
export async function connectOwnServer(
  { ended }: OwnServer,
  { socketPath, clock }: Pick<OwnServerStart, 'socketPath' | 'clock'>,
  options: AppServerOptions,
): Promise<AppServer | undefined> {
  let over = false;
  void ended.then(() => {
    over = true;
  });
  const untilMs = clock.elapsedMs() + startWaitMs;
  while (!over && clock.elapsedMs() < untilMs) {
    const server = await connectAppServer(connect(socketPath), options);
    if (typeof server === 'object') return server;
    await new Promise<void>((resolve) => clock.after(lookMs, resolve));
  }
  return undefined;
}

async function endGroup(pid: number, clock: Clock): Promise<void> {
  const beganMs = clock.elapsedMs();
  let sent: NodeJS.Signals | undefined;
  while (signal(pid, 0)) {
    const waitedMs = clock.elapsedMs() - beganMs;
    if (waitedMs >= killAfterMs + goneMs) return;
    const due = waitedMs >= killAfterMs ? 'SIGKILL' : 'SIGTERM';
    if (due !== sent) signal(pid, due);
    sent = due;
    await new Promise<void>((resolve) => clock.after(lookMs, resolve));
  }
}

/** @returns whether anybody is left in the group */
function signal(pid: number, name: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-pid, name);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
