// Whose socket it is: a token goes only to a socket that this account made, in a directory where nobody else could have
// put another.

import { lstatSync, type Stats } from 'node:fs';
import path from 'node:path';
import { Fault } from '../protocol/errors.ts';

/** Fault `insecure_path` where others could put a socket in its place. */
export function checkSocketDirectory(socketPath: string): void {
  const directory = path.dirname(socketPath);
  const stat = look(directory);
  if (!stat?.isDirectory() || stat.uid !== process.getuid?.() || (stat.mode & 0o022) !== 0)
    throw new Fault(
      'insecure_path',
      `${directory} is writable by others, has another owner or is no directory that is there`,
    );
}

/** The name that a router's socket is made under; no longer than its public one. */
export function draftOf(socketPath: string): string {
  return path.join(path.dirname(socketPath), `~${path.basename(socketPath).slice(1)}`);
}

/** Before anything is said to it. Fault `router_unreachable` where there is none, `insecure_path` where it is not ours. */
export function checkSocket(socketPath: string): void {
  const stat = look(socketPath);
  if (stat === undefined) throw new Fault('router_unreachable', 'the router cannot be reached (no socket)');
  checkSocketDirectory(socketPath);
  if (!stat.isSocket() || stat.uid !== process.getuid?.() || (stat.mode & 0o077) !== 0)
    throw new Fault('insecure_path', `${socketPath} is no socket of this account alone`);
}

/** undefined also where this account cannot even look: below a file, or in a directory that is closed to it. */
function look(file: string): Stats | undefined {
  try {
    return lstatSync(file);
  } catch {
    return undefined;
  }
}
