// Standard input and output by their descriptors where they can be: Node's own streams load its network modules, which takes
// a hook longer than all that it reads and writes. Of a socket, as Node and Claude Code give one for stdin, only a stream can
// be read without blocking.

import { closeSync, constants, fstatSync, openSync, readSync, statSync, writeSync } from 'node:fs';
import { Fault } from '../protocol/errors.ts';

const chunkBytes = 65_536;
/** How often an input that its writer has not written yet is asked again. */
const againMs = 2;

/**
 * What is written to stdin, in pieces, until its writer closes it or, where it is a pipe, `unwanted` is raised. Never by a read
 * that blocks: a process whose writer holds stdin open could not end.
 */
export async function* readStdin(unwanted: AbortSignal): AsyncGenerator<Buffer, void> {
  const descriptor = openWithoutBlocking();
  if (descriptor === undefined) {
    for await (const piece of process.stdin) yield piece as Buffer;
    return;
  }
  try {
    while (!unwanted.aborted) {
      const piece = readNow(descriptor);
      if (piece === 'nothing yet') await new Promise((resolve) => setTimeout(resolve, againMs));
      else if (piece === undefined) return;
      else yield piece;
    }
  } finally {
    closeSync(descriptor);
  }
}

/** Of a pipe, once more and for us alone: the host's own end stays as it is. Undefined for sockets, and without /proc. */
function openWithoutBlocking(): number | undefined {
  try {
    return openSync('/proc/self/fd/0', constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    return undefined;
  }
}

/** Undefined at the end, and where it cannot be read. */
function readNow(descriptor: number): Buffer | 'nothing yet' | undefined {
  const buffer = Buffer.allocUnsafe(chunkBytes);
  try {
    const bytes = readSync(descriptor, buffer);
    return bytes === 0 ? undefined : buffer.subarray(0, bytes);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EAGAIN' ? 'nothing yet' : undefined;
  }
}

/** Every byte, before it returns; throws where nobody reads. */
export function writeAll(descriptor: 1 | 2, text: string): void {
  if (isNullDevice(descriptor))
    throw new Fault('internal_error', `nobody reads ${descriptor === 1 ? 'stdout' : 'stderr'}`);
  let rest = Buffer.from(text, 'utf8');
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(descriptor, rest));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
    }
  }
}

/** Whether a person types there, or nothing is there at all. Whether it is a terminal only the network modules tell. */
export const isCharacterDevice = (descriptor: number): boolean => fstatSync(descriptor).isCharacterDevice();

/** Node opens the null device where a standard stream was closed. */
const isNullDevice = (descriptor: number): boolean =>
  fstatSync(descriptor).rdev === statSync('/dev/null', { throwIfNoEntry: false })?.rdev;
