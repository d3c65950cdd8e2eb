// The owner-private file that names who a host's sessions are: written by `postbell agent setup`, read by whoever
// registers or reminds such a session. It holds no token.

import { isRefusal, Refusal, type Result } from './errors.ts';
import { isObject, utf8Bytes } from './json.ts';
import { limits } from './limits.ts';
import { characters, isSessionId, isWellFormed, readName } from './scope.ts';

/** Hosts that have such a file, each of its own. */
export const configuredHosts = ['claude'] as const;
export type ConfiguredHost = (typeof configuredHosts)[number];

export interface HostConfig {
  version: 1;
  host: ConfiguredHost;
  principal_id: string;
  work_summary?: string;
  /** Kept as it was given, and read by nobody: a project is that of the directory. */
  project?: string;
  /** Of the router; a former default name counts as the current one. */
  socket?: string;
  /** Under which the channel is registered with the host. */
  server_name?: string;
  session_id?: string;
}

const malformed = (why: string): Refusal => new Refusal('invalid_request', `the host config ${why}`);

const texts = ['work_summary', 'project', 'socket', 'server_name', 'session_id'] as const;

/** The whole file, for the host that needs it. */
export function readHostConfig(host: ConfiguredHost, text: string): Result<HostConfig> {
  const parsed = parse(text);
  if (parsed === undefined) return malformed('is no JSON object of at most 64 KiB');
  if (parsed.version !== 1) return malformed('has another version than 1');
  if (parsed.host !== host) return malformed(`is not one of ${host}`);
  const principal_id = principalOf(parsed);
  if (isRefusal(principal_id)) return malformed(`names nobody: ${principal_id.message}`);
  const config: HostConfig = { version: 1, host, principal_id };
  for (const name of texts) {
    const value = parsed[name];
    if (value === undefined) continue;
    if (typeof value !== 'string' || !isWellFormed(value) || value === '')
      return malformed(`has a malformed ${name}`);
    config[name] = value;
  }
  if (characters(config.work_summary ?? '') > limits.workSummaryCharactersMax)
    return malformed(`has a work_summary of more than ${limits.workSummaryCharactersMax} characters`);
  if (config.session_id !== undefined && !isSessionId(config.session_id))
    return malformed('has a malformed session_id');
  return config;
}

/** Whom the file names; undefined for one that names nobody. Nothing else of it is looked at. */
export function principalNamedIn(text: string): string | undefined {
  const parsed = parse(text);
  const principal = parsed === undefined ? undefined : principalOf(parsed);
  return isRefusal(principal) ? undefined : principal;
}

function principalOf(parsed: Record<string, unknown>): Result<string> {
  const { principal_id } = parsed;
  return typeof principal_id === 'string'
    ? readName('principal_id', principal_id)
    : malformed('has no principal_id');
}

function parse(text: string): Record<string, unknown> | undefined {
  if (utf8Bytes(text) > limits.hostConfigBytesMax) return undefined;
  try {
    const parsed: unknown = JSON.parse(text);
    return isObject(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
}
