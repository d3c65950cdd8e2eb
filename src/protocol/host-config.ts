// The owner-private file that names who a host's sessions are: written by `postbell agent setup`, read by whoever
// registers or reminds such a session. It holds no token.

import { isRefusal, Refusal, type Result } from './errors.ts';
import { isObject, utf8Bytes } from './json.ts';
import { limits } from './limits.ts';
import { characters, isSessionId, isWellFormed, readName } from './scope.ts';

/** Hosts that have such a file, each of its own. */
export const configuredHosts = ['claude', 'codex', 'codex-session', 'gemini', 'acp'] as const;
export type ConfiguredHost = (typeof configuredHosts)[number];

/** Hosts of which a program is started by our own runner, with a command that the config holds. */
export const startedHosts = ['gemini', 'acp'] as const satisfies readonly ConfiguredHost[];

/** What an agent that asks for permission is answered where no person can be asked; `ask` where one can. */
export const permissions = ['ask', 'reject'] as const;
export type Permission = (typeof permissions)[number];

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
  /** The real path of the directory that the sessions work in; of every host but `claude`. */
  workspace?: string;
  /** Of the app-server that `postbell host codex` starts; without it one in `runtime/`. */
  control_socket?: string;
  /** The agent's argument vector, its program first. */
  command?: readonly string[];
  /** `reject`: every permission that the agent asks for is refused. */
  permission?: Permission;
  /** The agent's mode, where it offers one of that name. */
  mode?: string;
}

const malformed = (why: string): Refusal => new Refusal('invalid_request', `the host config ${why}`);

const texts = [
  'work_summary',
  'project',
  'socket',
  'server_name',
  'session_id',
  'workspace',
  'control_socket',
  'mode',
] as const;

/** Paths that mean the same wherever the reader stands. */
const absolutes = ['workspace', 'control_socket'] as const;

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
  for (const name of absolutes)
    if (config[name]?.startsWith('/') === false) return malformed(`has a relative ${name}`);
  if (host !== 'claude' && config.workspace === undefined) return malformed('has no workspace');
  return withCommand(config, parsed);
}

/** Of a host that is started: what starts it, and what it may do. */
function withCommand(
  config: HostConfig,
  { command, permission }: Record<string, unknown>,
): Result<HostConfig> {
  if (permission !== undefined) {
    const known = permissions.find((one) => one === permission);
    if (known === undefined)
      return malformed(`has a permission that is not one of ${permissions.join(', ')}`);
    config.permission = known;
  }
  const isStarted = startedHosts.some((one) => one === config.host);
  if (command === undefined) return isStarted ? malformed('has no command') : config;
  if (!isArgumentVector(command)) return malformed('has a command that is no list of words');
  return { ...config, command };
}

const isArgumentVector = (value: unknown): value is string[] =>
  Array.isArray(value) &&
  value.length > 0 &&
  value.every((word) => typeof word === 'string' && isWellFormed(word) && !word.includes('\0')) &&
  value[0] !== '';

/** Of which host it says it is. */
export function hostNamedIn(text: string): ConfiguredHost | undefined {
  const host = parse(text)?.host;
  return configuredHosts.find((one) => one === host);
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
