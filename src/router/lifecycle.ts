// One router an account: who may start, and what may be removed from the socket's path. A live socket is never
// unlinked; an orphan only after two refused connections with the same inode in between.

import { lstatSync, type Stats, unlinkSync } from 'node:fs';
import { connect } from 'node:net';
import type { Clock } from '../ports/clock.ts';
import { Fault } from '../protocol/errors.ts';
import { checkSocketDirectory } from './socket-owner.ts';

const probeWaitMs = 1_000;
const probeGapMs = 50;

/** Makes room for the socket. Faults: `router_already_running`, `socket_path_occupied`, `insecure_path`. */
export async function clearSocketPath(socketPath: string, ports: { clock: Clock }): Promise<void> {
  checkSocketDirectory(socketPath);
  const found = look(socketPath);
  if (found === undefined) return;
  if (!found.isSocket() || found.uid !== process.getuid?.())
    throw new Fault('socket_path_occupied', `something else is at ${socketPath}`);
  for (const last of [false, true]) {
    const state = await probe(socketPath, ports.clock);
    if (state === 'answers') throw new Fault('router_already_running', `a router answers at ${socketPath}`);
    if (state === 'unclear' || look(socketPath)?.ino !== found.ino)
      throw new Fault('socket_path_occupied', `the socket at ${socketPath} is in use or changing`);
    if (!last) await new Promise<void>((resolve) => ports.clock.after(probeGapMs, resolve));
  }
  unlinkSync(socketPath);
}

function look(file: string): Stats | undefined {
  try {
    return lstatSync(file, { throwIfNoEntry: false });
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new Fault('socket_path_occupied', `${file} cannot be looked at (${code})`, { cause });
  }
}

/** Whether a router takes connections there; `unclear` where that cannot be told within a second. */
export function probe(socketPath: string, clock: Clock): Promise<'answers' | 'refused' | 'unclear'> {
  return new Promise((resolve) => {
    const socket = connect(socketPath);
    const settle = (state: 'answers' | 'refused' | 'unclear'): void => {
      cancel();
      socket.destroy();
      resolve(state);
    };
    const cancel = clock.after(probeWaitMs, () => settle('unclear'));
    socket.once('connect', () => settle('answers'));
    socket.on('error', (error: NodeJS.ErrnoException) =>
      settle(error.code === 'ECONNREFUSED' || error.code === 'ENOENT' ? 'refused' : 'unclear'),
    );
  });
}
