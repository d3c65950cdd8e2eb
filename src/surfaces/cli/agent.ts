// `postbell agent setup`: one config file for the sessions of a host, and what its person does next.

import { channelFlag, channelServer, channelServerName } from '../../protocol/channel-flag.ts';
import { isRefusal, Refusal, type Result } from '../../protocol/errors.ts';
import { type Fields, readFields } from '../../protocol/fields.ts';
import { type ConfiguredHost, configuredHosts, type HostConfig } from '../../protocol/host-config.ts';
import { quoted } from '../../protocol/json.ts';
import { limits } from '../../protocol/limits.ts';
import { parseWords } from './arguments.ts';

export const setupFields = {
  principal: { kind: 'name', required: true, about: 'whose mail the sessions of this host get' },
  work_summary: {
    kind: 'text',
    max: limits.workSummaryCharactersMax,
    about: 'what they work on, as discover shows it',
  },
  project: {
    kind: 'text',
    max: limits.nameCharactersMax,
    about: 'kept; the project is that of the directory',
  },
  model: { kind: 'text', max: limits.nameCharactersMax, about: 'ignored' },
} as const satisfies Fields;

/** Hosts that are named in the documents and cannot be set up yet. */
const later = ['codex', 'codex-session', 'gemini', 'acp'];

export interface SetupAnswer {
  host: ConfiguredHost;
  config_path: string;
  /** How sessions of this host are rung. */
  mode: 'channel';
  principal_id: string;
  /** Who gives a session its id. */
  session_identity: 'host';
  registration_command: string;
  launch_command: string;
  next_command: string;
}

/** Writes the config, or refuses to where there is one already; its path. */
export type SetUp = (config: HostConfig, replace: boolean) => Result<string>;

/** @param note told of what is ignored */
export function agentSetup(
  words: readonly string[],
  setUp: SetUp,
  note: (text: string) => void,
): Result<SetupAnswer | string> {
  const parsed = parseWords(words, setupFields, ['replace', 'json'], 1);
  if (isRefusal(parsed)) return parsed;
  const { values, switched, positionals } = parsed;
  const host = configuredHosts.find((one) => one === positionals[0]);
  if (host === undefined) return refuseHost(positionals[0]);
  const request = readFields(setupFields, values);
  if (isRefusal(request)) return request;
  const { principal: principal_id, model, ...more } = request;
  const config: HostConfig = { version: 1, host, principal_id, ...more, server_name: channelServerName };
  const config_path = setUp(config, switched.has('replace'));
  if (isRefusal(config_path)) return config_path;
  if (model !== undefined)
    note('postbell: --model is ignored; what a session runs is its host\u2019s matter\n');
  const registration_command = `claude mcp add --transport stdio --scope user ${channelServerName} -- postbell host claude --config ${shellWord(config_path)}`;
  const answer: SetupAnswer = {
    host,
    config_path,
    mode: 'channel',
    principal_id,
    session_identity: 'host',
    registration_command,
    launch_command: `claude ${channelFlag} ${channelServer}`,
    next_command: registration_command,
  };
  return switched.has('json') ? answer : sentencesOf(answer);
}

function refuseHost(host: string | undefined): Refusal {
  const hosts = `agent setup takes ${configuredHosts.join(', ')}`;
  if (host === undefined) return new Refusal('usage', `name the host; ${hosts}`);
  return later.includes(host)
    ? new Refusal('invalid_request', `${host} cannot be set up yet; ${hosts}`)
    : new Refusal('invalid_request', `no such host: ${quoted(host)}; ${hosts}`);
}

function sentencesOf(answer: SetupAnswer): string {
  const { config_path, principal_id, registration_command, launch_command } = answer;
  return [
    `${config_path} says that Claude Code sessions of this account get the mail of ${quoted(principal_id)}.`,
    'Keep no config and no token in a repository, a shared dot-file or a world-readable directory.',
    'The file alone registers nothing. For the channel, its runner must be started next, which Claude Code does at each',
    'launch once it was told of it:',
    `  ${registration_command}`,
    'and the session must be launched with channels on, which you confirm at every start:',
    `  ${launch_command}`,
    'Its tools are those of the plugin. Whether Claude Code lets the channel in, Postbell cannot know.',
  ].join('\n');
}

/** The path as one word of a shell. */
const shellWord = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
