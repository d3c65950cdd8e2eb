// A throw-away home with the product's processes in it, all ended by pid.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type Env, endCommands, program, stopRouter } from './postbell.ts';
import { companionsOf } from './processes.ts';

export interface Started {
  child: ChildProcess;
  pid: number;
  stdout(): string;
  stderr(): string;
  exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
}

export interface Home {
  dir: string;
  project: string;
  env: Env;
  /** Starts a command and leaves it running. */
  start(words: string[], more?: Env): Started;
  /** Runs at the end, the last one first, before the processes are ended. */
  atEnd(then: () => unknown): void;
  /** Runs when the processes have ended, before the files go. */
  atLast(then: () => unknown): void;
  /** Ends everything that was started, and the router. */
  end(): Promise<void>;
}

/**
 * @param more added to an environment built from nothing
 * @param within words before each command that is started: what runs it where it shall run
 */
export function makeHome(more: Env = {}, within: readonly string[] = []): Home {
  const dir = realpathSync(mkdtempSync(path.join(tmpdir(), 'pb-')));
  const project = path.join(dir, 'shop');
  mkdirSync(project);
  const env: Env = {
    PATH: process.env.PATH as string,
    HOME: dir,
    POSTBELL_HOME: path.join(dir, 'data'),
    ...more,
  };
  const started: Started[] = [];
  const ending: (() => unknown)[] = [];
  const last: (() => unknown)[] = [];
  return {
    dir,
    project,
    env,
    start: (words, extra = {}) => {
      const process_ = start(words, { ...env, ...extra }, project, within);
      started.push(process_);
      return process_;
    },
    atEnd: (then) => void ending.push(then),
    atLast: (then) => void last.push(then),
    end: async () => {
      const faults: unknown[] = [];
      for (const then of ending.splice(0).reverse())
        await Promise.resolve()
          .then(then)
          .catch((error: unknown) => faults.push(error));
      endCommands(dir);
      for (const { pid } of companionsOf(dir)) process.kill(pid, 'SIGKILL');
      for (const { child } of started) child.kill('SIGTERM');
      const late = new Promise((resolve) => setTimeout(resolve, 3_000));
      await Promise.race([Promise.all(started.map(({ exited }) => exited)), late]);
      for (const { child } of started) child.kill('SIGKILL');
      await Promise.all(started.map(({ exited }) => exited));
      await stopRouter(env, project);
      for (const then of last) then();
      rmSync(dir, { recursive: true, force: true });
      if (faults.length > 0) throw faults[0];
    },
  };
}

export function start(words: string[], env: Env, cwd: string, within: readonly string[] = []): Started {
  const [file, ...args] = [...within, process.execPath, program, ...words] as [string, ...string[]];
  const child = spawn(file, args, { cwd, env });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString('utf8')));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString('utf8')));
  child.stdin.on('error', () => {});
  const exited = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) =>
    child.on('close', (code, signal) => resolve({ code, signal })),
  );
  return { child, pid: child.pid as number, stdout: () => stdout, stderr: () => stderr, exited };
}

/** Resolves once `look` answers truly. */
export async function until(
  what: string,
  look: () => boolean | Promise<boolean>,
  ms = 10_000,
): Promise<void> {
  const deadline = Date.now() + ms;
  while (!(await look())) {
    if (Date.now() > deadline) throw new Error(`not within ${ms} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
