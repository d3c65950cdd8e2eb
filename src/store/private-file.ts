// Store and lock files are looked at by path only and never opened except by SQLite: closing another descriptor of
// such a file would drop the locks that SQLite holds on it.

import { closeSync, lstatSync, openSync } from 'node:fs';
import { Fault } from '../protocol/errors.ts';

/**
 * Makes an empty file with mode 0600 whatever the umask, unless one is there.
 * Fault `insecure_path` where something else than a regular file is, `store_unwritable` where none can be made.
 */
export function createPrivateFile(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code !== 'EEXIST')
      throw new Fault('store_unwritable', `the file cannot be made (${code}): ${path}`, { cause: error });
    if (!lstatSync(path).isFile()) throw new Fault('insecure_path', `not a regular file: ${path}`);
  }
}
