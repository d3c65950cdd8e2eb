// Starts the installed router on its own, and says how one that cannot make room is ended.

import { spawn } from 'node:child_process';
import path from 'node:path';
import { type Environment, ownEnvironment } from '../platform/environment.ts';
import { checkSocketPath } from '../platform/paths.ts';
import { commandLine, isAlive } from '../platform/processes.ts';
import { draftOf } from '../router/socket-owner.ts';
import type { Ground } from './store.ts';

/** A router needs a moment to listen; one that cannot start is tried again ever more seldom. */
const startAgainMsFirst = 2_000;
const startAgainMsMax = 300_000;

/**
 * Starts a router, ever more seldom where none comes up; `fresh` where one has served since the last start.
 * @param onFault told when there can be no router, or its process could not be started
 */
export function routerStarter(
  { environment, places, clock }: Ground,
  onFault: (error: unknown) => void,
): (fresh: boolean) => void {
  let gapMs = 0;
  let startedAtMs = Number.NEGATIVE_INFINITY;
  return (fresh) => {
    if (fresh) startedAtMs = Number.NEGATIVE_INFINITY;
    const passedMs = clock.elapsedMs() - startedAtMs;
    if (passedMs < gapMs) return;
    gapMs =
      passedMs > 2 * startAgainMsMax
        ? startAgainMsFirst
        : Math.min(Math.max(2 * gapMs, startAgainMsFirst), startAgainMsMax);
    startedAtMs = clock.elapsedMs();
    try {
      checkSocketPath(places.routerSocket);
      // By its absolute path: the router starts elsewhere, and must find this very store.
      startDetached({ ...environment, POSTBELL_DB: places.database }, onFault);
    } catch (error) {
      onFault(error);
    }
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

/**
 * The command that ends exactly the router that runs: by the pid that the holder of its lock wrote; where there is none,
 * by whoever holds the socket.
 */
export function endRouterLine({ places, store }: Pick<Ground, 'places' | 'store'>): string {
  const run = store.read((tx) => tx.routers.newest());
  const isIt = run !== undefined && run.socket === places.routerSocket && runsRouter(run.pid);
  if (isIt) return `kill ${run.pid}`;
  // A router listens under the draft of its name; an older one may listen under the name itself.
  const names = [places.routerSocket, draftOf(places.routerSocket)].map((name) => `-e ${quoted(name)}`);
  return `kill $(lsof -U | grep -F ${names.join(' ')} | awk '{print $2}' | sort -u)`;
}

/** The pid may long be another process's. */
const runsRouter = (pid: number): boolean =>
  isAlive(pid) && /postbell\S* (?:router|up)(?: |$)/.test((commandLine(pid) ?? []).join(' '));

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
