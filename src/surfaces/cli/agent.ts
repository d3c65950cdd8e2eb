// `postbell agent setup`: one config file for the sessions of a host, and what its person does next.

import { channelFlag, channelServer, channelServerName } from '../../protocol/channel-flag.ts';
import { isRefusal, Refusal, type Result } from '../../protocol/errors.ts';
import { type Fields, readFields } from '../../protocol/fields.ts';
import { type ConfiguredHost, configuredHosts, type HostConfig } from '../../protocol/host-config.ts';
import { harmless, quoted } from '../../protocol/json.ts';
import { limits } from '../../protocol/limits.ts';
import { splitWords, typedWord } from '../../protocol/shell-words.ts';
import { parseWords } from './arguments.ts';

export const setupFields = {
  principal: { kind: 'name', required: true, about: 'whose mail the sessions of this host get' },
  workspace: {
    kind: 'text',
    max: limits.hostConfigBytesMax,
    about: 'where they work, except for claude; default: the current directory',
  },
  command: {
    kind: 'text',
    max: limits.hostConfigBytesMax,
    about: 'acp alone: what starts the agent, in one string',
  },
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

/** What a person knows to start as its ACP agent. */
const geminiCommand = ['gemini', '--acp'] as const;

/** How sessions of each host are rung, and who gives a session its id. */
const kinds = {
  claude: { mode: 'channel', session_identity: 'host' },
  codex: { mode: 'app-server', session_identity: 'generated' },
  'codex-session': { mode: 'queue', session_identity: 'host' },
  gemini: { mode: 'acp', session_identity: 'generated' },
  acp: { mode: 'acp', session_identity: 'generated' },
} as const satisfies Record<ConfiguredHost, object>;

type Kind = (typeof kinds)[ConfiguredHost];

export interface SetupAnswer {
  host: ConfiguredHost;
  config_path: string;
  mode: Kind['mode'];
  principal_id: string;
  session_identity: Kind['session_identity'];
  registration_command?: string;
  launch_command?: string;
  next_command: string;
}

/** What was written, and where: its workspace as the real path. */
export interface Written {
  path: string;
  config: HostConfig;
}

/** Writes the config, or refuses to where there is one already. */
export type SetUp = (config: HostConfig, replace: boolean) => Result<Written>;

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
  const { principal: principal_id, model, workspace, command, ...more } = request;
  const started = startedBy(host, command);
  if (isRefusal(started)) return started;
  if (host === 'claude' && workspace !== undefined)
    return new Refusal('usage', 'claude has no workspace: its sessions work where they are started');
  const config: HostConfig = {
    version: 1,
    host,
    principal_id,
    ...more,
    ...(host === 'claude' ? { server_name: channelServerName } : { workspace: workspace ?? '.' }),
    ...(started !== undefined && { command: started }),
  };
  const written = setUp(config, switched.has('replace'));
  if (isRefusal(written)) return written;
  if (model !== undefined)
    note('postbell: --model is ignored; what a session runs is its host\u2019s matter\n');
  const answer = answerOf(written);
  return switched.has('json') ? answer : sentencesOf(answer, written);
}

/** The agent's argument vector; undefined for a host that our own runners start, or its person. */
function startedBy(host: ConfiguredHost, command: string | undefined): Result<readonly string[] | undefined> {
  if (host === 'acp')
    return command === undefined
      ? new Refusal('invalid_request', 'acp needs --command: what starts the agent, in one string')
      : splitWords(command);
  if (command !== undefined) return new Refusal('usage', `--command is for acp alone; ${host} has its own`);
  return host === 'gemini' ? geminiCommand : undefined;
}

function answerOf({ path, config: { host, principal_id, workspace = '' } }: Written): SetupAnswer {
  const answer = { host, config_path: path, ...kinds[host], principal_id };
  if (host === 'claude') {
    const registration_command = `claude mcp add --transport stdio --scope user ${channelServerName} -- postbell host claude --config ${typedWord(path)}`;
    return {
      ...answer,
      registration_command,
      launch_command: `claude ${channelFlag} ${channelServer}`,
      next_command: registration_command,
    };
  }
  const runner = host === 'codex' ? 'codex' : 'acp';
  return {
    ...answer,
    next_command:
      host === 'codex-session'
        ? `cd ${typedWord(workspace)} && codex`
        : `postbell host ${runner} --config ${typedWord(path)}`,
  };
}

function refuseHost(host: string | undefined): Refusal {
  const hosts = `agent setup takes ${configuredHosts.join(', ')}`;
  if (host === undefined) return new Refusal('usage', `name the host; ${hosts}`);
  return new Refusal('invalid_request', `no such host: ${quoted(host)}; ${hosts}`);
}

const keepPrivate =
  'Keep no config and no token in a repository, a shared dot-file or a world-readable directory.';

function sentencesOf(answer: SetupAnswer, { config }: Written): string {
  const { config_path, next_command } = answer;
  const says = (what: string): string =>
    `${harmless(config_path)} says that ${what} the mail of ${quoted(config.principal_id)}.`;
  const at = harmless(config.workspace ?? '');
  if (answer.host === 'claude') return ofClaude(answer, says('Claude Code sessions of this account get'));
  if (answer.host === 'codex-session')
    return [
      says(`ordinary Codex sessions in exactly ${at} get`),
      keepPrivate,
      'The file alone registers nothing, and nothing is to be started for it: a session registers with its first turn, by',
      'the hooks of the plugin. Sessions elsewhere keep names of their own.',
      `  ${next_command}`,
    ].join('\n');
  const agent =
    answer.host === 'codex' ? 'the Codex app-server' : `the agent ${quoted(config.command?.[0] ?? '')}`;
  return [
    says(`${agent} that its runner starts in ${at} gets`),
    keepPrivate,
    'The file alone registers nothing. The runner must be started next; it starts the agent, under a new session id each time:',
    `  ${next_command}`,
  ].join('\n');
}

const ofClaude = ({ registration_command, launch_command }: SetupAnswer, says: string): string =>
  [
    says,
    keepPrivate,
    'The file alone registers nothing. For the channel, its runner must be started next, which Claude Code does at each',
    'launch once it was told of it:',
    `  ${registration_command}`,
    'and the session must be launched with channels on, which you confirm at every start:',
    `  ${launch_command}`,
    'Its tools are those of the plugin. Whether Claude Code lets the channel in, Postbell cannot know.',
  ].join('\n');
