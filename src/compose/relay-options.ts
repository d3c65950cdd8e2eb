// The options of `postbell relay`: a flag each, else its environment variable, else what stands here.

import path from 'node:path';
import { parseArgs } from 'node:util';
import { type Environment, setting } from '../platform/environment.ts';
import { Fault } from '../protocol/errors.ts';
import { isCanonicalOrigin, originRule } from '../protocol/origin.ts';

export interface RelayOptionsGiven {
  host: string;
  port: number;
  /** As clients know it; undefined where the operator does not say. */
  publicUrl: string | undefined;
  /** Whether other machines reach it. */
  exposed: boolean;
  /** Of the SQLite file. */
  storePath: string;
}

const names = ['listen', 'public-url', 'store', 'insecure-http'] as const;
type Name = (typeof names)[number];

const variablePrefix = 'POSTBELL_RELAY_';
const variableOf = (name: string): string => `${variablePrefix}${name.toUpperCase().replaceAll('-', '_')}`;

const loopback = /^(?:127(?:\.\d{1,3}){3}|::1|localhost)$/;

/** Fault `usage`, which names the option, for an unknown one and for a value that it cannot have. */
export function relayOptions(
  words: readonly string[],
  environment: Environment,
  directory: string,
): RelayOptionsGiven {
  const given = { ...fromEnvironment(environment), ...fromWords(words) };
  const { host, port } = addressOf(given.listen ?? '127.0.0.1:7420');
  const insecure = given['insecure-http'] ?? 'false';
  if (insecure !== 'true' && insecure !== 'false') throw bad('insecure-http', 'is true or false');
  const exposed = !loopback.test(host);
  if (exposed && insecure === 'false')
    throw bad(
      'listen',
      `${host} can be reached from other machines, and this relay has no TLS: put it behind a proxy on this machine, or add --insecure-http`,
    );
  const publicUrl = given['public-url'];
  if (publicUrl !== undefined && !isCanonicalOrigin(publicUrl)) throw bad('public-url', originRule);
  return { host, port, publicUrl, exposed, storePath: storePathOf(given.store, directory) };
}

const bad = (name: Name, why: string): Fault => new Fault('usage', `--${name}: ${why}`);

function fromWords(words: readonly string[]): Partial<Record<Name, string>> {
  try {
    const { values } = parseArgs({
      args: [...words],
      options: {
        listen: { type: 'string' },
        'public-url': { type: 'string' },
        store: { type: 'string' },
        'insecure-http': { type: 'boolean' },
      },
    });
    const { 'insecure-http': insecure, ...texts } = values;
    return { ...texts, ...(insecure !== undefined && { 'insecure-http': String(insecure) }) };
  } catch (cause) {
    // The first sentence names the option.
    const said = String((cause as Error).message).split('. ')[0] as string;
    throw new Fault('usage', `relay: ${said}`, { cause });
  }
}

function fromEnvironment(environment: Environment): Partial<Record<Name, string>> {
  const known = new Map(names.map((name) => [variableOf(name), name]));
  const found: Partial<Record<Name, string>> = {};
  for (const variable of Object.keys(environment)) {
    if (!variable.startsWith(variablePrefix)) continue;
    const name = known.get(variable);
    if (name === undefined) throw new Fault('usage', `${variable}: there is no such option of the relay`);
    const value = setting(environment, variable);
    if (value !== undefined) found[name] = value;
  }
  return found;
}

function addressOf(listen: string): { host: string; port: number } {
  const found = /^(?:\[([0-9A-Fa-f:.]+)\]|([^:[\]\s]+)):(\d{1,5})$/.exec(listen);
  const host = found?.[1] ?? found?.[2];
  const port = Number(found?.[3]);
  if (host === undefined || port > 65_535) throw bad('listen', `${JSON.stringify(listen)} is no host:port`);
  return { host, port };
}

function storePathOf(store: string | undefined, directory: string): string {
  if (store === undefined) return path.join(directory, 'relay.db');
  const file = /^sqlite:(.+)$/.exec(store)?.[1];
  if (file === undefined) throw bad('store', `${JSON.stringify(store)} is no sqlite:PATH`);
  return path.resolve(file);
}
