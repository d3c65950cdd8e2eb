// An app-server of our own: on a private socket, in a process group of its own, ended with all that it started there.

import { spawn } from 'node:child_process';
import { lstatSync, rmSync, statSync } from 'node:fs';
import { connect } from 'node:net';
import type { Clock } from '../../ports/clock.ts';
import { beginningOf, quoted } from '../../protocol/json.ts';
import { endGroup, endOf, guardGroup } from '../process-group.ts';
import { type AppServer, type AppServerOptions, connectAppServer } from './app-server.ts';

const lookMs = 50;
/** A loaded machine takes seconds to start it. */
const startWaitMs = 30_000;
/** Of its last words; and of the one line that is repeated. */
const saidCharactersMax = 4_096;
const lineCharactersMax = 500;
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
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true,
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-saidCharactersMax);
  });
  const unguard = child.pid === undefined ? undefined : guardGroup(child.pid);
  return {
    pid: child.pid,
    ended: endOf(child).then((how) => {
      const why = (child.exitCode ?? 0) === 0 ? '' : errorIn(said);
      return why === '' ? how : `${how}, and said ${quoted(why)}`;
    }),
    end: async () => {
      if (child.pid !== undefined)
        await endGroup(child.pid, clock, { beganMs: clock.elapsedMs(), terminateMs: 0, killMs });
      unguard?.();
      if (await isDead(socketPath)) rmSync(socketPath, { force: true });
    },
  };
}

/** A backtrace may follow the line that says what failed. */
function errorIn(said: string): string {
  const lines = said.trimEnd().split('\n');
  const line = lines.find((one) => /^error\b/i.test(one)) ?? lines.at(-1) ?? '';
  return beginningOf(line, lineCharactersMax);
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

/**
 * Codex makes the socket that it is told to make a link to one elsewhere. Killed with its guard it leaves the link: one behind
 * which nobody listens is removed.
 */
export async function clearLink(socketPath: string): Promise<void> {
  if (lstatSync(socketPath, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return;
  const target = statSync(socketPath, { throwIfNoEntry: false });
  if (target?.isSocket() === false || !(await isDead(socketPath))) return;
  rmSync(socketPath, { force: true });
}

/** A socket at which nobody listens: where another runner was faster, it is that one's. */
function isDead(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(socketPath);
    socket.on('connect', () => {
      socket.destroy();
      resolve(false);
    });
    socket.on('error', (error: NodeJS.ErrnoException) =>
      resolve(error.code === 'ECONNREFUSED' || error.code === 'ENOENT'),
    );
  });
}
