// Owner-private files. Postbell makes directories 0700 and files 0600 whatever the umask. A directory found must be this
// account’s and not writable by others; a file found with any access for others is refused, never silently repaired.

import {
  chmodSync,
  closeSync,
  fchmodSync,
  fsyncSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { Fault } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';

const othersMask = 0o077;
const othersWriteMask = 0o022;

/** Makes the directory owner-private, or checks that it is this account's and not writable by others. */
export function ensureDirectory(directory: string): void {
  checkDirectory(directory, made(directory));
}

/** Reads a file that an owner placed. Fault `insecure_path` also where its directory is another's or open to others. */
export function readPlacedFile(file: string): string | undefined {
  const directory = path.dirname(file);
  const stat = statSync(directory, { throwIfNoEntry: false });
  if (stat === undefined) return undefined;
  checkDirectory(directory, stat);
  return readPrivateFile(file);
}

function checkDirectory(directory: string, stat: Stats): void {
  const foreign = stat.uid !== process.getuid?.() || (stat.mode & othersWriteMask) !== 0;
  if (!stat.isDirectory() || foreign) throw insecure(directory, stat);
}

function made(directory: string): Stats {
  try {
    const found = lstatSync(directory, { throwIfNoEntry: false });
    if (found !== undefined) return found;
    if (makeWithParents(directory)) chmodSync(directory, 0o700);
    return lstatSync(directory);
  } catch (error) {
    throw fileFault(error, directory);
  }
}

/**
 * Whether it was made here. Not by mkdir's own recursion, which never ends where a file system says ENOENT below a
 * directory that is there, as /proc does.
 */
function makeWithParents(directory: string, hasParent = false): boolean {
  try {
    mkdirSync(directory, { mode: 0o700 });
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') return false;
    const parent = path.dirname(directory);
    const isThere = lstatSync(parent, { throwIfNoEntry: false }) !== undefined;
    // Another process may have made it since.
    if (code !== 'ENOENT' || (isThere && hasParent)) throw error;
    if (!isThere) makeWithParents(parent);
    return makeWithParents(directory, true);
  }
}

/** What the file system refused, as a fault that names the path. */
export function fileFault(error: unknown, file: string, what: 'made' | 'written' = 'made'): Fault {
  const { code } = error as NodeJS.ErrnoException;
  const full = code === 'ENOSPC' || code === 'EDQUOT';
  return new Fault(full ? 'store_full' : 'store_unwritable', `${file} cannot be ${what} (${code})`, {
    cause: error,
  });
}

/**
 * Reads a file only this account can read. Undefined where there is none; Fault `insecure_path` for anything else, and for one of
 * more bytes than ours have.
 */
export function readPrivateFile(file: string): string | undefined {
  try {
    const stat = lstatSync(file);
    const isPrivate = stat.isFile() && stat.uid === process.getuid?.() && (stat.mode & othersMask) === 0;
    if (!isPrivate) throw insecure(file, stat);
    if (stat.size > limits.privateFileBytesMax)
      throw new Fault('insecure_path', `${file} has ${stat.size} bytes and is none of ours`);
    return readFileSync(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    if (error instanceof Fault) throw error;
    throw new Fault('insecure_path', `${file} cannot be read (${code})`, { cause: error });
  }
}

/**
 * Makes the file once; the first of several writers wins, and a reader sees it whole or not at all.
 * @returns whether it was made here
 */
export function createPrivateOnce(file: string, text: string): boolean {
  const draft = path.join(path.dirname(file), `.${path.basename(file)}.${process.pid}`);
  try {
    writeDraft(draft, text);
    linkSync(draft, file);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw fileFault(error, file);
    return false;
  } finally {
    rmSync(draft, { force: true });
  }
}

/** Puts `text` in the place of the file, whole: a reader sees the one or the other. */
export function replacePrivateFile(file: string, text: string): void {
  const draft = path.join(path.dirname(file), `.${path.basename(file)}.${process.pid}`);
  try {
    writeDraft(draft, text);
    renameSync(draft, file);
  } catch (error) {
    throw fileFault(error, file);
  } finally {
    rmSync(draft, { force: true });
  }
}

/** As that, of a file that its owner edits: with this mode, and with the directory flushed. The caller holds its lock. */
export function replaceOwnersFile(file: string, text: string, mode: number): void {
  const directory = path.dirname(file);
  const draft = path.join(directory, `.${path.basename(file)}.${process.pid}`);
  try {
    writeDraft(draft, text, mode);
    renameSync(draft, file);
    flush(directory);
  } catch (error) {
    throw fileFault(error, file, 'written');
  } finally {
    rmSync(draft, { force: true });
  }
}

function flush(directory: string): void {
  const descriptor = openSync(directory, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function writeDraft(draft: string, text: string, mode = 0o600): void {
  rmSync(draft, { force: true });
  const descriptor = openSync(draft, 'wx', 0o600);
  try {
    // Every byte: a disk that fills up takes a part of one write without a word.
    writeFileSync(descriptor, text);
    // Whatever the umask.
    if (mode !== 0o600) fchmodSync(descriptor, mode);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function insecure(file: string, stat: Stats): Fault {
  const mode = `has mode 0${(stat.mode & 0o777).toString(8)} or another owner`;
  return new Fault('insecure_path', `${file} ${stat.isSymbolicLink() ? 'is a symbolic link' : mode}`, {
    details: { path: file },
  });
}
