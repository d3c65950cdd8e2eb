// The owner-private files of hosts, as doctor looks at them.

import path from 'node:path';
import type { Environment } from '../platform/environment.ts';
import { readPrivateFile } from '../platform/files.ts';
import { directoryAt, lookAt, namesIn } from '../platform/look.ts';
import type { Places } from '../platform/paths.ts';
import { onPath } from '../platform/programs.ts';
import type { Looked } from '../ports/inspection.ts';
import { describeError, isRefusal } from '../protocol/errors.ts';
import { configuredHosts, type HostConfig, readHostConfig } from '../protocol/host-config.ts';
import type { HostFile } from '../surfaces/doctor/facts.ts';

export function hostConfigs(environment: Environment, { hostDirectory }: Places): Looked<HostFile[]> {
  const names = namesIn(hostDirectory);
  if (names.state === 'closed') return { state: 'closed', why: `${hostDirectory} ${names.why}` };
  if (names.state === 'missing') return names;
  const files = names.value.filter((name) => name.endsWith('.json') && !name.startsWith('.'));
  const looked = files.map((name) => withStale(environment, privateFile(path.join(hostDirectory, name))));
  return { state: 'found', value: looked };
}

export function privateFile(file: string): HostFile {
  try {
    const text = readPrivateFile(file);
    return { path: file, text: text === undefined ? { state: 'missing' } : { state: 'found', value: text } };
  } catch (error) {
    return { path: file, text: { state: 'insecure', why: describeError(error).message } };
  }
}

/** Of a file that is sound: what it names and is not there. */
function withStale(environment: Environment, file: HostFile): HostFile {
  const host = configuredHosts.find((one) => one === path.basename(file.path, '.json'));
  const config =
    host !== undefined && file.text.state === 'found' ? readHostConfig(host, file.text.value) : undefined;
  if (config === undefined || isRefusal(config)) return file;
  const stale = staleIn(environment, config);
  return stale === undefined ? file : { ...file, stale };
}

function staleIn(environment: Environment, { workspace, command }: HostConfig): string | undefined {
  if (workspace !== undefined && directoryAt(workspace) === undefined)
    return `the workspace ${workspace}, which is no directory that is there`;
  const program = command?.[0];
  if (program === undefined) return undefined;
  const isThere = program.includes('/')
    ? lookAt(path.resolve(workspace ?? '/', program)).state !== 'missing'
    : onPath(environment, program).some(({ dangling }) => !dangling);
  return isThere
    ? undefined
    : `the program ${program}, which is not ${program.includes('/') ? 'there' : 'on PATH'}`;
}
