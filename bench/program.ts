// The product and bare node as processes of their own, in a home of the benchmark's own. Whatever was started is
// ended by its id, the newest first: a session whose router went first would start another one.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import { startTime } from '../src/platform/processes.ts';
import { pause } from './metric.ts';

type Env = Record<string, string>;

export interface Home {
  directory: string;
  /** A git work tree with a remote, as most projects are. */
  project: string;
  /** Closed: nothing of the caller's environment but the path. */
  env: Env;
}

export function makeHome(parent: string, name: string): Home {
  const directory = path.join(parent, name);
  const project = path.join(directory, 'project');
  mkdirSync(project, { recursive: true, mode: 0o700 });
  const env = { PATH: process.env.PATH ?? '', HOME: directory, POSTBELL_HOME: directory };
  const git = (...words: string[]): unknown => execFileSync('git', ['-C', project, ...words], { env });
  git('init', '--quiet');
  git('remote', 'add', 'origin', 'https://git.example/team/shop.git');
  return { directory, project, env };
}

const running: ChildProcess[] = [];

/** @param trace the file that strace writes its syncs to */
function start(
  words: readonly string[],
  { project, env }: Home,
  more: Env = {},
  trace?: string,
): ChildProcess {
  const traced = ['-f', '-qq', '-e', 'trace=fsync,fdatasync', '-e', 'signal=none', '-o', String(trace)];
  const [file, ...args] =
    trace === undefined ? [process.execPath, ...words] : ['strace', ...traced, process.execPath, ...words];
  const child = spawn(file as string, args, { cwd: project, env: { ...env, ...more } });
  running.push(child);
  child.on('exit', () => running.splice(running.indexOf(child), 1));
  child.stdin?.on('error', () => {});
  return child;
}

/** A process that says one line when it is ready. */
export async function startTelling(
  words: readonly string[],
  directory: string,
  trace?: string,
): Promise<Process & { told: string }> {
  const env = { PATH: process.env.PATH ?? '', HOME: directory };
  const child = start(words, { directory, project: directory, env }, {}, trace);
  child.stderr?.resume();
  const told = await new Promise<string>((resolve, reject) => {
    child.stdout?.once('data', (chunk: Buffer) => resolve(chunk.toString('utf8')));
    child.once('exit', (code) => reject(new Error(`${words.join(' ')} ended with ${code}`)));
  });
  return {
    pid: child.pid as number,
    told,
    end: async () => {
      child.kill('SIGTERM');
      await exitOf(child);
    },
  };
}

export async function endAll(): Promise<void> {
  for (const child of running.toReversed()) {
    const gone = exitOf(child);
    child.kill('SIGKILL');
    await gone;
  }
}

export function exitOf(child: ChildProcess): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve(child.exitCode);
  return new Promise((resolve) => child.once('exit', (code) => resolve(code)));
}

/** Milliseconds from the spawn to the exit. Throws at any other exit status than 0. */
export async function wall(
  home: Home,
  words: readonly string[],
  given: { input?: string; env?: Env } = {},
): Promise<number> {
  const begun = performance.now();
  const child = start(words, home, given.env);
  let text = '';
  child.stderr?.on('data', (chunk: Buffer) => (text += chunk.toString('utf8')));
  child.stdout?.resume();
  child.stdin?.end(given.input ?? '');
  const code = await exitOf(child);
  const ms = performance.now() - begun;
  if (code !== 0) throw new Error(`${words.join(' ')} ended with ${code}: ${text}`);
  return ms;
}

/** Milliseconds of a bare node, the yardstick of every start. */
export const bareNode = (home: Home): Promise<number> => wall(home, ['-e', '0']);

export interface Process {
  pid: number;
  /** By a signal, or by the end of its input. */
  end(): Promise<void>;
}

/** Resolves once the router takes connections. */
export async function startRouter(program: string, home: Home, trace?: string): Promise<Process> {
  const child = start([program, 'router'], home, {}, trace);
  child.stderr?.resume();
  const socketPath = path.join(home.directory, 'router-v1.sock');
  for (let tries = 0; !(await answers(socketPath)); tries += 1) {
    if (tries > 200 || child.exitCode !== null) throw new Error('the router does not answer');
    await pause(20);
  }
  return {
    pid: child.pid as number,
    end: async () => {
      child.kill('SIGTERM');
      await exitOf(child);
    },
  };
}

function answers(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(socketPath);
    socket.once('connect', () => resolve(true));
    socket.once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}

export interface Listener {
  pid: number;
  exit: Promise<number | null>;
}

/** The listener that a host starts for a session. It blocks until mail lands. */
export function startListener(program: string, home: Home, session: string): Listener {
  const child = start([program, 'wait'], home, sessionEnv(home, session));
  child.stderr?.resume();
  child.stdin?.end(JSON.stringify({ session_id: session }));
  return { pid: child.pid as number, exit: exitOf(child) };
}

/** The companion of a Codex thread, which this process stands for. Resolves once it is registered. */
export async function startCompanion(program: string, home: Home, thread: string): Promise<Process> {
  const child = start([program, 'companion'], home);
  const host = { pid: process.pid, start_time: startTime(process.pid) };
  const task = { thread, workspace: home.project, host, program: 'codex', shared: false };
  const answered = new Promise<string>((resolve) =>
    child.stdout?.once('data', (text) => resolve(String(text))),
  );
  child.stdin?.write(`${JSON.stringify(task)}\n`);
  const answer = await answered;
  if (!answer.includes('registered')) throw new Error(`the companion did not register: ${answer}`);
  return {
    pid: child.pid as number,
    end: async () => {
      child.kill('SIGTERM');
      await exitOf(child);
    },
  };
}

/** What Claude Code gives its children; this process stands for the host. */
export function sessionEnv(home: Home, session: string): Env {
  return {
    CLAUDE_CODE_SESSION_ID: session,
    CLAUDE_PID: String(process.pid),
    CLAUDE_PROJECT_DIR: home.project,
    POSTBELL_RECIPIENT: 'reader',
  };
}

export interface Server extends Process {
  /** From the spawn to the first answer. */
  firstAnswerMs: number;
  /** Says that the client is ready; the session registers. */
  initialized(): void;
}

/** Starts a server of newline-delimited JSON-RPC and has it answer `initialize`. */
export async function startServer(words: readonly string[], home: Home, session: string): Promise<Server> {
  const begun = performance.now();
  const child = start(words, home, sessionEnv(home, session));
  child.stderr?.resume();
  const say = (message: object): unknown =>
    child.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  say({
    id: 1,
    method: 'initialize',
    params: {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'bench', version: '1' },
    },
  });
  await new Promise<void>((resolve, reject) => {
    child.stdout?.once('data', () => resolve());
    child.once('exit', (code) => reject(new Error(`${words.join(' ')} ended with ${code}`)));
  });
  const firstAnswerMs = performance.now() - begun;
  child.stdout?.resume();
  return {
    pid: child.pid as number,
    firstAnswerMs,
    initialized: () => say({ method: 'notifications/initialized' }),
    end: async () => {
      child.stdin?.end();
      await exitOf(child);
    },
  };
}
