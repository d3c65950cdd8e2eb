// Other processes of this machine, looked at and never touched.

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, readlinkSync } from 'node:fs';
import { isAbsolute } from 'node:path';

const psWaitMs = 2_000;

/** Whether a process of that id runs: one that has ended, and that its parent leaves lying, does not. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false;
  }
  return !/^[ZX]/.test(procStat(pid)?.[0] ?? ps(pid, 'stat=') ?? '');
}

/** When the process started, in the system's own words: equal for one process, different after its id was reused. */
export function startTime(pid: number): string | undefined {
  return procStat(pid)?.[19] ?? ps(pid, 'lstart=');
}

export function parentOf(pid: number): number | undefined {
  const parent = Number(procStat(pid)?.[1] ?? ps(pid, 'ppid='));
  return Number.isInteger(parent) && parent > 0 ? parent : undefined;
}

/** The arguments the process was started with; undefined where they cannot be read. */
export function commandLine(pid: number): string[] | undefined {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1);
  } catch {
    return ps(pid, 'command=')?.split(' ');
  }
}

/** The file that the process runs; undefined where the system does not show it, or it has been replaced. */
export function executable(pid: number): string | undefined {
  try {
    const file = readlinkSync(`/proc/${pid}/exe`);
    return existsSync(file) ? file : undefined;
  } catch {
    const file = ps(pid, 'comm=');
    return file !== undefined && isAbsolute(file) && existsSync(file) ? file : undefined;
  }
}

/** The processes above, the nearest first, each with the arguments it was started with. */
export function walkUp(pid: number, levelsMax: number): { pid: number; words: string[] }[] {
  const above: { pid: number; words: string[] }[] = [];
  for (let next = parentOf(pid); next !== undefined && above.length < levelsMax; next = parentOf(next))
    above.push({ pid: next, words: commandLine(next) ?? [] });
  return above;
}

/** Fields after the command name, from `state` on (proc(5)). */
function procStat(pid: number): string[] | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return text.slice(text.lastIndexOf(')') + 2).split(' ');
  } catch {
    return undefined;
  }
}

function ps(pid: number, column: string): string | undefined {
  // Where there is /proc, a process that is not in it is none.
  if (existsSync('/proc/self/stat')) return undefined;
  try {
    const text = execFileSync('ps', ['-ww', '-o', column, '-p', String(pid)], {
      encoding: 'utf8',
      timeout: psWaitMs,
    }).trim();
    return text === '' ? undefined : text;
  } catch {
    return undefined;
  }
}
