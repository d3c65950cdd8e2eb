// Looking at files without touching them. Store and lock files are looked at by `lookAt` alone, never read.

import { lstatSync, readdirSync, readFileSync, realpathSync, type Stats, statSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import type { Entry, Looked } from '../ports/inspection.ts';

/** What other programs keep is not read beyond it. */
const bytesMax = 33_554_432;

export function lookAt(path: string): Looked<Entry> {
  return looked(() => {
    const stat = lstatSync(path);
    return {
      path,
      kind: kindOf(stat),
      mode: stat.mode & 0o777,
      own: stat.uid === process.getuid?.(),
      bytes: stat.size,
    };
  });
}

function kindOf(stat: Stats): Entry['kind'] {
  if (stat.isFile()) return 'file';
  if (stat.isDirectory()) return 'directory';
  if (stat.isSocket()) return 'socket';
  return stat.isSymbolicLink() ? 'link' : 'other';
}

/** Whether a link leads to anything but a socket, or nothing. */
export function leadsToFile(link: string): boolean {
  const found = looked(() => statSync(link));
  return found.state === 'closed' || (found.state === 'found' && !found.value.isSocket());
}

/** The text of a regular file. */
export function textOf(path: string): Looked<string> {
  return looked(() => {
    const stat = statSync(path);
    if (!stat.isFile()) throw new NoText('is no regular file');
    if (stat.size > bytesMax) throw new NoText(`has more than ${bytesMax} bytes`);
    return readFileSync(path, 'utf8');
  });
}

/** What the system says of a running process; `missing` where it has ended. */
export function textOfProcess(pid: number, name: string): Looked<string> {
  return looked(() => readFileSync(`/proc/${pid}/${name}`, 'utf8'));
}

/** Sorted. */
export function namesIn(directory: string): Looked<string[]> {
  return looked(() => readdirSync(directory).sort());
}

/** Where links lead; the path itself where nothing is there. */
export function realPathOf(path: string): string {
  const found = looked(() => realpathSync(path));
  return found.state === 'found' ? found.value : path;
}

/** The real path of a directory; undefined where none is there. */
export function directoryAt(path: string): string | undefined {
  const found = looked(() => {
    const real = realpathSync(path);
    return statSync(real).isDirectory() ? real : undefined;
  });
  return found.state === 'found' ? found.value : undefined;
}

/** Whether it is a directory that is there, named from the root on: the same for every process. */
export const isPlace = (directory: string): boolean =>
  isAbsolute(directory) && directoryAt(directory) !== undefined;

class NoText extends Error {}

function looked<T>(look: () => T): Looked<T> {
  try {
    return { state: 'found', value: look() };
  } catch (error) {
    if (error instanceof NoText) return { state: 'closed', why: error.message };
    const { code } = error as NodeJS.ErrnoException;
    // ESRCH: a process that ended while its files were read.
    return code === 'ENOENT' || code === 'ENOTDIR' || code === 'ESRCH'
      ? { state: 'missing' }
      : { state: 'closed', why: `cannot be read (${code})` };
  }
}
