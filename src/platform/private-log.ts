// An owner-private log of lines: begun anew when it is full, and never a line lost to a writer beside it.

import {
  appendFileSync,
  closeSync,
  fstatSync,
  linkSync,
  lstatSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { Fault } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import { fileFault } from './files.ts';

/** Fault `store_full` or `store_unwritable` where it cannot be written. A full log is kept as `<file>.1`, once. */
export function appendLine(file: string, text: string): void {
  const line = `${text}\n`;
  if (lstatSync(file, { throwIfNoEntry: false })?.isFile() === false)
    throw new Fault('insecure_path', `not a regular file: ${file}`);
  try {
    if (isFull(file, line)) makeRoom(file, line);
    append(file, line);
  } catch (error) {
    throw fileFault(error, file, 'written');
  }
}

function append(file: string, line: string): void {
  const descriptor = openSync(file, 'a+', 0o600);
  try {
    writeFileSync(descriptor, isTorn(descriptor) ? `\n${line}` : line);
  } finally {
    closeSync(descriptor);
  }
}

/** Whether the record before was cut off, as by a full disk. */
function isTorn(descriptor: number): boolean {
  const { size } = fstatSync(descriptor);
  const last = Buffer.alloc(1);
  return size > 0 && readSync(descriptor, last, 0, 1, size - 1) === 1 && last.toString() !== '\n';
}

function isFull(file: string, line: string): boolean {
  const bytes = lstatSync(file, { throwIfNoEntry: false })?.size ?? 0;
  return bytes > 0 && bytes + Buffer.byteLength(line) > limits.logBytesMax;
}

/** Many hooks may find it full at once: it is moved aside by the first of them, under a name of its own. */
function makeRoom(file: string, line: string): void {
  const aside = `${file}.${process.pid}`;
  try {
    if (!isFull(file, line)) return;
    renameSync(file, aside);
    if (isFull(aside, line)) renameSync(aside, `${file}.1`);
    else putBack(aside, file);
  } catch {
    // The record is more than the size of its log, and the disk more than the log before.
    rmSync(aside, { force: true });
  }
}

/** Another one was faster, and this is the new log, of which there may be a newer one by now. */
function putBack(aside: string, file: string): void {
  try {
    linkSync(aside, file);
  } catch {
    appendFileSync(file, readFileSync(aside), { mode: 0o600 });
  }
  rmSync(aside);
}
