// The router of this account, in this process: started under its lock, ended by a signal or by `router stop`.

import { chmodSync, lstatSync, renameSync, rmSync } from 'node:fs';
import { newId } from '../mailbox/desk.ts';
import type { Environment } from '../platform/environment.ts';
import { createPrivateOnce, readPrivateFile } from '../platform/files.ts';
import { createOwnersFile } from '../platform/owners-file.ts';
import { checkSocketPath, policyFile } from '../platform/paths.ts';
import { gatherTouches } from '../platform/wake.ts';
import type { Lock } from '../ports/lock.ts';
import type { Log } from '../ports/log.ts';
import { describeError, Fault } from '../protocol/errors.ts';
import { hex } from '../protocol/id.ts';
import { limits } from '../protocol/limits.ts';
import { emptyPolicy } from '../protocol/policy-text.ts';
import { version as productVersion } from '../protocol/version.ts';
import type { StopCause } from '../router/handlers.ts';
import { clearSocketPath, probe } from '../router/lifecycle.ts';
import type { Link, LinkState } from '../router/link/link.ts';
import { QueueReleases } from '../router/releases.ts';
import { type RouterServer, routerServer } from '../router/server.ts';
import { draftOf } from '../router/socket-owner.ts';
import { Leases } from '../sessions/leases.ts';
import { beginRun } from '../sessions/router-run.ts';
import { takeFile } from '../store/lock.ts';
import { linkOf } from './link.ts';
import { codexQueues } from './queues.ts';
import type { Ground } from './store.ts';

export interface Daemon {
  /** How its relays stand; undefined where nothing leaves this machine. */
  link(): LinkState | undefined;
  close(): Promise<void>;
}

/** What a router runs on, and as which version. */
export type RouterGround = Pick<Ground, 'environment' | 'places' | 'store' | 'clock' | 'random' | 'wake'> & {
  version?: string;
};

/**
 * `on.stop` is called when a client asked for the end or a newer host was refused, `on.lost` when the socket is no longer
 * this router's. Faults: `router_already_running`, `router_start_in_progress`, `router_superseded`, and those of the
 * socket's path.
 */
export async function startRouter(
  ground: RouterGround,
  log: Log,
  on: { stop(why: StopCause): void; lost(): void },
): Promise<Daemon> {
  const { places } = ground;
  const version = ground.version ?? productVersion;
  checkSocketPath(places.routerSocket);
  const lock = await takeStartLock(ground);
  try {
    await clearSocketPath(places.routerSocket, ground);
    const instance = newId(ground, 'run');
    const { pid } = process;
    await beginRun(ground, { instance, pid, version, socket: places.routerSocket });
    const secret = token(ground);
    const ports = { ...ground, wake: gatherTouches(ground.wake, ground.clock) };
    const releases = new QueueReleases(ports, codexQueues(ground.environment, ground.clock), log);
    let link: Link | undefined;
    const server = routerServer({
      ports: {
        ...ports,
        leases: new Leases(),
        instance,
        hostOutcomeWaitMs: limits.hostOutcomeWaitMs,
      },
      token: secret,
      log,
      pid,
      version,
      more: () => (link === undefined ? {} : { link: link.state() }),
      stop: on.stop,
    });
    const socket = await listenAt(server, places.routerSocket);
    link = linkOf({ ...ground, ...ports }, log, ({ project, delivery_id }) =>
      server.handOver(project, delivery_id),
    );
    const looks = [() => server.expireLeases(), () => releases.look()];
    const stopTicking = tick(ground, looks, log, () => {
      if (socket.isOurs()) keepToken(ground, secret);
      else on.lost();
    });
    return {
      link: () => link?.state(),
      close: async () => {
        stopTicking();
        try {
          await Promise.all([server.close(), releases.close(), link?.close()]);
        } finally {
          socket.remove();
          lock.release();
        }
      },
    };
  } catch (error) {
    lock.release();
    throw error;
  }
}

/**
 * Listens under a name of its own, and takes the socket's place when it is owner-private: whoever finds the socket
 * finds it ready. (Closing a server removes the path that it was bound to, whatever lies there by then; so that path
 * is never the public one.)
 */
async function listenAt(server: RouterServer, socketPath: string): Promise<PublicSocket> {
  const ino = await bind(server, draftOf(socketPath), socketPath);
  const isOurs = (): boolean => lstatSync(socketPath, { throwIfNoEntry: false })?.ino === ino;
  return { isOurs, remove: () => isOurs() && rmSync(socketPath) };
}

/** @returns the inode of the socket; where anything fails, nothing listens any more. */
async function bind(server: RouterServer, draft: string, socketPath: string): Promise<number> {
  try {
    rmSync(draft, { force: true });
    await server.listen(draft);
    chmodSync(draft, 0o600);
    renameSync(draft, socketPath);
    return lstatSync(socketPath).ino;
  } catch (error) {
    await server.close();
    const { code } = error as NodeJS.ErrnoException;
    throw error instanceof Fault
      ? error
      : new Fault('socket_path_occupied', `no socket can be made at ${socketPath} (${code})`, {
          cause: error,
        });
  }
}

interface PublicSocket {
  /** Whether whoever looks for the router finds this one. */
  isOurs(): boolean;
  /** Unless something else has taken its place. */
  remove(): void;
}

/** Kept by the running router, and freed by any death of it. */
async function takeStartLock(ground: RouterGround): Promise<Lock> {
  const lock = takeFile(ground.places.routerLock);
  if (lock !== undefined) return lock;
  if ((await probe(ground.places.routerSocket, ground.clock)) === 'answers')
    throw new Fault('router_already_running', `a router holds ${ground.places.routerSocket}`);
  throw new Fault('router_start_in_progress', 'another process is starting the router');
}

/** 32 random bytes in hex, made once. */
/** For its owner to find: what a router's process does first. Without the file nobody on another machine is trusted. */
export function makePolicyFile(environment: Environment, log: Log): void {
  try {
    createOwnersFile(policyFile(environment), emptyPolicy);
  } catch (error) {
    log.warn('the policy file was not made', { code: describeError(error).code });
  }
}

function token({ places, random }: RouterGround): string {
  const found = readPrivateFile(places.routerToken)?.trim();
  if (found !== undefined && /^[0-9a-f]{64}$/.test(found)) return found;
  // Half a token is none; this router holds the lock under which one is made.
  rmSync(places.routerToken, { force: true });
  createPrivateOnce(places.routerToken, `${hex(random.bytes(32))}\n`);
  return (readPrivateFile(places.routerToken) as string).trim();
}

/**
 * Puts the token back that somebody removed or replaced: nobody could ask this router for anything any more. Fault
 * `insecure_path` where it is open to others: that is for the owner to mend.
 */
function keepToken({ places: { routerToken } }: RouterGround, secret: string): void {
  if (readPrivateFile(routerToken)?.trim() === secret) return;
  rmSync(routerToken, { force: true });
  createPrivateOnce(routerToken, `${secret}\n`);
}

/**
 * Every two seconds: what is due (leases that ran out, questions about queues); a socket that somebody removed, without which this router serves nobody and
 * must make room, or its token, which is put back; and a writer that died between its commit and its touch, of which whoever waits without a tick of
 * its own hears from here.
 */
function tick(
  { store, clock, wake }: RouterGround,
  due: readonly (() => Promise<void> | void)[],
  log: Log,
  checkPlaces: () => void,
): () => void {
  const failed = (error: unknown): void => log.warn('look failed', { code: describeError(error).code });
  /** A commit that was touched for is seen here, at the touch; what the tick then sees was not. */
  const look = (onChange: () => void): void => {
    try {
      if (store.changed()) onChange();
    } catch (error) {
      failed(error);
    }
  };
  const unwatch = wake.watch(() => look(() => {}));
  let cancel = (): void => {};
  /** What is wrong with the places, said once. */
  let wrong: string | undefined;
  const again = (): void => {
    cancel = clock.after(limits.wakeTickMs, again);
    for (const one of due) Promise.resolve().then(one).catch(failed);
    look(() => wake.touch());
    try {
      checkPlaces();
      wrong = undefined;
    } catch (error) {
      const { code } = describeError(error);
      if (code !== wrong) failed(error);
      wrong = code;
    }
  };
  again();
  return () => {
    cancel();
    unwatch();
  };
}
