// An app-server of our own: on a private socket, in a process group of its own, ended with all that it started there.

import { spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { connect } from 'node:net';
import type { Clock } from '../../ports/clock.ts';
import { endGroup, endOf, guardGroup } from '../process-group.ts';
import { type AppServer, type AppServerOptions, connectAppServer } from './app-server.ts';

const lookMs = 50;
/** A loaded machine takes seconds to start it. */
const startWaitMs = 30_000;
/** Codex lets a running turn end first, which may take for ever. */
const killMs = 2_000;

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

/** Nothing may lie at the socket's path. */
export function startOwnServer(start: OwnServerStart): OwnServer {
  const { program, socketPath, directory, environment, clock } = start;
  const child = spawn(program, ['app-server', '--listen', `unix://${socketPath}`], {
    cwd: directory,
    env: environment as NodeJS.ProcessEnv,
    stdio: 'ignore',
    detached: true,
  });
  const unguard = child.pid === undefined ? undefined : guardGroup(child.pid);
  return {
    pid: child.pid,
    ended: endOf(child),
    end: async () => {
      if (child.pid !== undefined)
        await endGroup(child.pid, clock, { beganMs: clock.elapsedMs(), terminateMs: 0, killMs });
      unguard?.();
      if (await isDead(socketPath)) rmSync(socketPath, { force: true });
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

/** A socket at which nobody listens: where another runner was faster, it is that one's. */
function isDead(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(socketPath);
    socket.on('connect', () => {
      socket.destroy();
      resolve(false);
    });
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED'));
  });
}
