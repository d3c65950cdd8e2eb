// `codex app-server proxy`: the way to the app-server that runs for a home, if one does. A process group of its own, ended
// with the question; it is told nothing but which home is meant.

import { spawn } from 'node:child_process';
import { Duplex } from 'node:stream';
import { signalGroup } from '../process-group.ts';

/** Of what the proxy says on stderr, as much as tells why it ended. */
const saidCharactersMax = 4_096;

export interface Proxy {
  stream: Duplex;
  /** How it ended: nobody listens at the server's place, or otherwise. */
  ended: Promise<'no_daemon' | 'failed'>;
  end(): void;
}

export function openProxy(program: string, environment: Readonly<Record<string, string>>): Proxy {
  const child = spawn(program, ['app-server', 'proxy'], {
    cwd: '/',
    env: environment as NodeJS.ProcessEnv,
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: true,
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (piece: string) => {
    if (said.length < saidCharactersMax) said += piece;
  });
  const ended = new Promise<'no_daemon' | 'failed'>((resolve) => {
    child.once('error', () => resolve('failed'));
    child.once('close', () => resolve(/failed to connect to socket/i.test(said) ? 'no_daemon' : 'failed'));
  });
  const stream = Duplex.from({ readable: child.stdout, writable: child.stdin });
  stream.on('error', () => {});
  // Of the end of a process that was still written to the pair alone may never hear.
  child.once('close', () => stream.destroy());
  return {
    stream,
    ended,
    end: () => {
      if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
      signalGroup(child.pid, 'SIGKILL');
    },
  };
}
