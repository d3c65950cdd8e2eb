// Programs of this machine: where PATH finds them, and what one answers that is run to its end.

import { execFile } from 'node:child_process';
import { accessSync, constants, lstatSync, statSync } from 'node:fs';
import { userInfo } from 'node:os';
import path from 'node:path';
import type { Looked } from '../ports/inspection.ts';
import { type Environment, setting } from './environment.ts';

export interface OnPath {
  path: string;
  /** A link that leads nowhere. */
  dangling: boolean;
}

/** Everything of that name in the folders of PATH that could be started, or once could, in their order. */
export function onPath(environment: Environment, name: string): OnPath[] {
  const folders = (environment.PATH ?? '').split(path.delimiter).filter((folder) => path.isAbsolute(folder));
  return [...new Set(folders)].flatMap((folder): OnPath[] => {
    const file = path.join(folder, name);
    if (isProgram(file)) return [{ path: file, dangling: false }];
    return isDangling(file) ? [{ path: file, dangling: true }] : [];
  });
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

function isDangling(file: string): boolean {
  try {
    lstatSync(file);
    statSync(file);
    return false;
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException;
    return code === 'ENOENT' && syscall === 'stat';
  }
}

export interface Ran {
  /** Null where a signal, or the limit of time, ended it or it could not be started. */
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Runs a program to its end, with `input` on stdin. */
export function runProgram(
  file: string,
  words: readonly string[],
  options: {
    env: Environment;
    cwd?: string;
    timeoutMs: number;
    input?: string;
    /** What ends it after that time. */
    killSignal?: 'SIGTERM' | 'SIGKILL';
  },
): Promise<Ran> {
  const { env, cwd, timeoutMs, input = '', killSignal = 'SIGTERM' } = options;
  return new Promise((resolve) => {
    const child = execFile(
      file,
      [...words],
      {
        env: env as NodeJS.ProcessEnv,
        ...(cwd !== undefined && { cwd }),
        timeout: timeoutMs,
        killSignal,
      },
      (_error, stdout, stderr) => resolve({ code: child.exitCode, stdout, stderr }),
    );
    child.stdin?.on('error', () => {});
    child.stdin?.end(input);
  });
}

const shellWaitMs = 5_000;

/** Where a login shell of this account finds the program. */
export async function loginShellFinds(environment: Environment, name: string): Promise<Looked<string>> {
  const shell = setting(environment, 'SHELL') ?? accountShell() ?? '/bin/sh';
  const asked = ['-l', '-c', `command -v ${name} || echo none`];
  // A shell may ignore any other signal.
  const limit = { timeoutMs: shellWaitMs, killSignal: 'SIGKILL' } as const;
  const { stdout } = await runProgram(shell, asked, { env: environment, cwd: '/', ...limit });
  // A profile may print what it likes before.
  const said = stdout.trim().split('\n').at(-1) ?? '';
  if (said === 'none') return { state: 'missing' };
  if (path.isAbsolute(said)) return { state: 'found', value: said };
  return { state: 'closed', why: `${shell} does not say within ${shellWaitMs / 1_000} s` };
}

function accountShell(): string | undefined {
  try {
    return userInfo().shell ?? undefined;
  } catch {
    return undefined;
  }
}
