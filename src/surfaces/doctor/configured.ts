// Rows of the files that say who a host's sessions are, and of the channel that one of them is for.

import path from 'node:path';
import { type Finding, worst } from '../../protocol/doctor.ts';
import { isRefusal } from '../../protocol/errors.ts';
import { type ConfiguredHost, configuredHosts, readHostConfig } from '../../protocol/host-config.ts';
import { type ChannelFacts, type DoctorFacts, type HostFile, shellWord, unseen } from './facts.ts';

const channelServer = 'postbell-channel';
const channelCommand = (file: string): string =>
  `claude mcp add --transport stdio --scope user ${channelServer} -- postbell host claude --config ${shellWord(file)}`;

export function hostsConfig({ hostConfigs }: DoctorFacts): Finding {
  if (hostConfigs.state === 'closed')
    return unseen(hostConfigs.why, 'make the directory hosts/ yours, mode 0700');
  const files = hostConfigs.state === 'found' ? hostConfigs.value : [];
  if (files.length === 0) return { level: 'pass', text: 'none, and ordinary sessions need none' };
  const findings = files.flatMap((file) => {
    const host = path.basename(file.path, '.json');
    const known = configuredHosts.find((one) => one === host);
    const unknown = `${file.path} is of no host that has one (${configuredHosts.join(', ')})`;
    const wrong = known === undefined ? unknown : wrongIn(file, known);
    return wrong === undefined ? [] : [{ level: 'warn' as const, text: wrong, hint: remedyOf(file, known) }];
  });
  return worst(findings, { level: 'pass', text: `${files.length} private and valid` });
}

/** What is wrong with a host's file; undefined where nothing is. */
function wrongIn({ path: file, text, stale }: HostFile, host: ConfiguredHost): string | undefined {
  if (text.state === 'missing') return `stale: ${file} is gone`;
  if (text.state === 'insecure') return `insecure: ${text.why}`;
  if (text.state === 'closed') return `malformed: ${file} ${text.why}`;
  const config = readHostConfig(host, text.value);
  if (isRefusal(config)) return `malformed: ${file}: ${config.message}`;
  return stale === undefined ? undefined : `stale: ${file} names ${stale}`;
}

function remedyOf({ path: file, text, stale }: HostFile, host: ConfiguredHost | undefined): string {
  if (text.state === 'insecure') return `chmod 600 ${shellWord(file)}, if it is yours`;
  const config = host !== undefined && text.state === 'found' && readHostConfig(host, text.value);
  if (stale === undefined || !config || isRefusal(config)) return `mend or remove ${shellWord(file)}`;
  const { principal_id, command = [] } = config;
  const started = command.length === 0 ? '' : ` --command ${shellWord(command.map(shellWord).join(' '))}`;
  const again = `postbell agent setup ${host} --principal ${shellWord(principal_id)}${started} --replace`;
  return `${again}, or bring back what it names`;
}

export function claudeChannel({ channel, claude }: DoctorFacts): Finding {
  if (channel === undefined)
    return {
      level: 'info',
      text: 'not looked at: only a doctor that a Claude session with channels runs has one to look at',
    };
  const state = claude.unread.find(({ path: file }) => path.basename(file) === '.claude.json');
  if (state !== undefined)
    return unseen(`${state.path} ${state.why}`, `let Claude Code mend ${shellWord(state.path)}`);
  if (channel.server.state === 'missing')
    return {
      level: 'warn',
      text: `missing: no user-scoped server ${channelServer} is registered`,
      hint: channelCommand('FILE'),
    };
  const wrong = wrongOfChannel(channel);
  if (wrong !== undefined)
    return {
      level: 'warn',
      text: wrong,
      hint: `claude mcp remove --scope user ${channelServer} && ${channelCommand(channel.config?.path ?? 'FILE')}`,
    };
  return {
    level: 'pass',
    text: 'CONFIGURED; this proves neither admission of the channel nor that a message was surfaced',
  };
}

/** Malformed, stale or insecure, in the order in which they are met. */
function wrongOfChannel({ server, config, socket }: ChannelFacts): string | undefined {
  if (server.state !== 'found' || config === undefined)
    return `malformed: ${channelServer} does not start postbell host claude --config FILE`;
  const wrong = wrongIn(config, 'claude');
  const read =
    wrong === undefined && config.text.state === 'found' && readHostConfig('claude', config.text.value);
  if (!read || isRefusal(read)) return wrong;
  if (read.server_name !== undefined && read.server_name !== channelServer)
    return `stale: ${config.path} is of a server of another name`;
  if (read.socket !== undefined && read.socket !== socket)
    return `stale: ${config.path} names another router than ${socket}`;
  return undefined;
}
