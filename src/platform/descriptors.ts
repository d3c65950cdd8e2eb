// Standard input and output by their descriptors: Node's own streams load its network modules, which takes a hook longer
// than all that it reads and writes.

import { fstatSync, read, statSync, writeSync } from 'node:fs';
import { Fault } from '../protocol/errors.ts';

const chunkBytes = 65_536;

/** What is written to stdin, in pieces, until its writer closes it. A piece that is waited for keeps the process alive. */
export async function* readStdin(): AsyncGenerator<Buffer, void> {
  for (;;) {
    const buffer = Buffer.allocUnsafe(chunkBytes);
    const bytes = await new Promise<number>((resolve) =>
      read(0, buffer, 0, chunkBytes, null, (error, count) => resolve(error === null ? count : 0)),
    );
    if (bytes === 0) return;
    yield buffer.subarray(0, bytes);
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

/** Node opens the null device where a standard stream was closed. */
const isNullDevice = (descriptor: number): boolean =>
  fstatSync(descriptor).rdev === statSync('/dev/null', { throwIfNoEntry: false })?.rdev;
