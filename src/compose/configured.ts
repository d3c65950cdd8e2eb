// What a runner is started with: the config file of its host, and the environment that follows from it.

import path from 'node:path';
import { parseArgs } from 'node:util';
import { type Environment, processEnvironment } from '../platform/environment.ts';
import { readPlacedFile } from '../platform/files.ts';
import { placesOf, socketNamed } from '../platform/paths.ts';
import { Fault, isRefusal } from '../protocol/errors.ts';
import {
  type ConfiguredHost,
  type HostConfig,
  hostNamedIn,
  readHostConfig,
} from '../protocol/host-config.ts';

/** @returns the path after `HOST --config` */
export function readConfigPath(runner: string, [host, ...flags]: readonly string[]): string {
  const usage = new Fault('usage', 'host takes claude, codex or acp, and --config FILE');
  if (host !== runner) throw usage;
  try {
    const { config = '' } = parseArgs({ args: [...flags], options: { config: { type: 'string' } } }).values;
    if (config !== '') return path.resolve(config);
  } catch {
    // said below
  }
  throw usage;
}

/** The config of one of these hosts. */
export function readConfig(hosts: readonly [ConfiguredHost, ...ConfiguredHost[]], file: string): HostConfig {
  const text = readPlacedFile(file);
  const [first] = hosts;
  if (text === undefined)
    throw new Fault(
      'invalid_request',
      `there is no ${file}; postbell agent setup ${hosts.join(' or ')} makes such a file`,
    );
  const named = hostNamedIn(text);
  const host = hosts.find((one) => one === named);
  if (named !== undefined && host === undefined)
    throw new Fault('invalid_request', `${file}: the host config is not one of ${hosts.join(' or ')}`);
  const config = readHostConfig(host ?? first, text);
  if (isRefusal(config)) throw new Fault(config.code, `${file}: ${config.message}`);
  return config;
}

/** A socket that the config names is also that of the router which this process starts. */
export function environmentOf({ socket }: HostConfig): Environment {
  if (socket === undefined) return processEnvironment;
  return { ...processEnvironment, POSTBELL_ROUTER_SOCKET: socketNamed(placesOf(processEnvironment), socket) };
}
