// Where everything lies. Server, hooks and CLI use this one function.

import { userInfo } from 'node:os';
import path from 'node:path';
import { Fault } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import { type Environment, setting } from './environment.ts';

export interface Places {
  /** Holds every other file; beside a database that was placed elsewhere. */
  directory: string;
  database: string;
  runtime: string;
  /** Touched after each commit that may start or end waiting. */
  wakeFile: string;
  routerSocket: string;
  routerLock: string;
  routerToken: string;
  /** One line a hook that ran. */
  hookOutcomes: string;
  /** Why companions of Codex threads ended, other than in order. */
  companionLog: string;
  /** Holds what each session's Stop gate has blocked for. */
  gateDirectory: string;
  /** Holds one owner-private file a host. */
  hostDirectory: string;
}

/** Who the sessions of a host are, where its owner said so. */
export const hostConfigFile = ({ hostDirectory }: Pick<Places, 'hostDirectory'>, host: string): string =>
  path.join(hostDirectory, `${host}.json`);

/** A default name of the router's socket that an earlier version may have left in a host's config. */
const formerSocketName = /^router(?:-v\d+)?\.sock$/;

/** The router's socket as a host's config names it: a former default counts as the current one, any other is exact. */
export function socketNamed(places: Pick<Places, 'directory' | 'routerSocket'>, named: string): string {
  const isDefault = path.dirname(named) === places.directory && formerSocketName.test(path.basename(named));
  return isDefault ? places.routerSocket : named;
}

/** Where the key of this account's identity lies, if there is one. */
export const keyFile = (environment: Environment): string =>
  configFile(environment, 'POSTBELL_KEY', 'identity.key');

/** Where the account says whom it trusts. */
export const policyFile = (environment: Environment): string =>
  configFile(environment, 'POSTBELL_PEERS', 'peers.json');

function configFile(environment: Environment, variable: string, name: string): string {
  const named = setting(environment, variable);
  if (named !== undefined) return path.resolve(named);
  const xdg = setting(environment, 'XDG_CONFIG_HOME');
  const config =
    xdg !== undefined && path.isAbsolute(xdg) ? xdg : path.join(accountHome(environment), '.config');
  return path.join(config, 'postbell', name);
}

/** An empty or relative XDG value counts as unset. */
export function placesOf(environment: Environment): Places {
  const home = accountHome(environment);
  const xdg = setting(environment, 'XDG_STATE_HOME');
  const state = xdg !== undefined && path.isAbsolute(xdg) ? xdg : path.join(home, '.local', 'state');
  const chosen = setting(environment, 'POSTBELL_HOME') ?? path.join(state, 'postbell');
  const database = path.resolve(setting(environment, 'POSTBELL_DB') ?? path.join(chosen, 'postbell.db'));
  const directory = path.dirname(database);
  const runtime = path.join(directory, 'runtime');
  return {
    directory,
    database,
    runtime,
    wakeFile: path.join(runtime, 'mail'),
    routerSocket: environment.POSTBELL_ROUTER_SOCKET ?? path.join(directory, 'router-v1.sock'),
    routerLock: path.join(directory, 'router-v1.lock'),
    routerToken: path.join(directory, 'router.token'),
    hookOutcomes: path.join(directory, 'hook-outcomes.jsonl'),
    companionLog: path.join(directory, 'codex-companion.log'),
    gateDirectory: path.join(directory, 'stop-gate'),
    hostDirectory: path.join(directory, 'hosts'),
  };
}

/** As the environment says, else the account's own. Fault `store_unwritable` where neither says one. */
export function accountHome(environment: Environment): string {
  const named = setting(environment, 'HOME') ?? setting(environment, 'USERPROFILE');
  if (named !== undefined) return named;
  try {
    const { homedir } = userInfo();
    if (path.isAbsolute(homedir)) return homedir;
  } catch {
    // no entry for this account
  }
  throw new Fault('store_unwritable', 'no home directory is known; set POSTBELL_HOME');
}

/** Fault `invalid_socket_path` or `socket_path_too_long`, before anything is created. */
export function checkSocketPath(socketPath: string): void {
  if (socketPath === '' || !path.isAbsolute(socketPath))
    throw new Fault(
      'invalid_socket_path',
      `the router socket must be an absolute path, not ${JSON.stringify(socketPath)}`,
    );
  const bytes = Buffer.byteLength(socketPath);
  if (bytes > limits.socketPathBytesMax)
    throw new Fault(
      'socket_path_too_long',
      `${socketPath} has ${bytes} bytes; at most ${limits.socketPathBytesMax}`,
    );
}
