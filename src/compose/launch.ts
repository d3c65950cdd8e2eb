// Starts the installed router on its own.

import { spawn } from 'node:child_process';
import path from 'node:path';
import { type Environment, ownEnvironment } from '../platform/environment.ts';
import type { Ground } from './store.ts';

/** A router needs a moment to listen; until then it is not started again. */
const startAgainMs = 2_000;

/** @param onFault told when the process could not be started */
export function routerStarter({ environment, clock }: Ground, onFault: (error: unknown) => void): () => void {
  let startedAtMs = Number.NEGATIVE_INFINITY;
  return () => {
    const passedMs = clock.nowMs() - startedAtMs;
    if (passedMs >= 0 && passedMs < startAgainMs) return;
    startedAtMs = clock.nowMs();
    startDetached(environment, onFault);
  };
}

/** The installed router, on its own: it goes on when this host ends. */
function startDetached(environment: Environment, onFault: (error: unknown) => void): void {
  const entry = path.join(__dirname, 'postbell.cjs');
  const child = spawn(process.execPath, [entry, 'router'], {
    detached: true,
    stdio: 'ignore',
    cwd: '/',
    env: ownEnvironment(environment),
  });
  child.on('error', onFault);
  child.unref();
}
