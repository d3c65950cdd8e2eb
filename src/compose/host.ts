// `postbell host claude`: the channel of one Claude Code session, as a stdio server that a person registered once. It offers
// no tools: those come with the plugin's own server, and a second copy would only lie in the model's context. Where that
// server is the channel itself, this one says nothing.

import { channel, channelBell } from '../hosts/claude-code/channel.ts';
import { ancestors } from '../platform/ancestry.ts';
import { processEnvironment } from '../platform/environment.ts';
import { say } from '../platform/stderr.ts';
import { channelServer, opensChannel } from '../protocol/channel-flag.ts';
import { Fault, isRefusal } from '../protocol/errors.ts';
import type { HostConfig } from '../protocol/host-config.ts';
import { hex } from '../protocol/id.ts';
import { type McpServer, serveMcp } from '../surfaces/mcp/server.ts';
import { environmentOf, readConfig, readConfigPath } from './configured.ts';
import { endOnSignal, endReplaced, endWithHost } from './ending.ts';
import { note, orFail } from './failure.ts';
import { channelsOn, hostProcess, hostSession } from './identity.ts';
import { type Local, openLocal } from './local.ts';
import { boundProject } from './project.ts';
import {
  type Reach,
  reachable,
  type Session,
  sessionListener,
  throughServer,
  unfindable,
} from './reachable.ts';
import { principalOf, recipientIgnored } from './recipient.ts';

export function main(words: readonly string[]): Promise<void> {
  return orFail(words, async (rest) => {
    const file = readConfigPath('claude', rest);
    if (process.platform === 'win32') throw new Fault('unsupported_platform', 'no host runs on Windows');
    const silent =
      channelsOn(processEnvironment) || opensChannel(await ancestors(process.ppid), channelServer) === false;
    await (silent ? serveNothing() : serve(readConfig(['claude'], file)));
  });
}

/** A project that cannot be known now is asked for again. */
const projectAgainMs = 30_000;

/** The plugin's own server is the channel of this session, or it was started without the flag: then nothing of ours shows. */
async function serveNothing(): Promise<void> {
  const end = endOnSignal(async () => {});
  await serveMcp({ input: process.stdin, output: process.stdout, onInitialized: () => {}, onClosed: end });
}

async function serve(config: HostConfig): Promise<void> {
  const local = await openLocal(environmentOf(config));
  const session = sessionOf(local, config);
  const ignored = recipientIgnored(local.environment);
  if (ignored !== undefined) say(`${ignored}\n`);
  if (session.generated) say(unfindable(session.id, true));
  let server: McpServer | undefined;
  let reach: ReturnType<typeof reachable> | undefined;
  let ended = false;
  const end = endOnSignal(async () => {
    ended = true;
    unwatch();
    await reach?.close();
    local.close();
  });
  const unwatch = endWithHost(local, session.process, end);
  const register = async (): Promise<void> => {
    const project = await boundProject(local.environment, () => server?.roots() ?? Promise.resolve([]))();
    if (ended) return;
    if (isRefusal(project)) {
      note(project);
      // Nobody calls a tool here, by which it would be found later.
      local.clock.after(projectAgainMs, () => void register().catch(note));
      return;
    }
    const listener = sessionListener(local, session);
    const also = listener && { listener, onFault: note };
    const startedAtMs = local.clock.elapsedMs();
    const reached: Reach = {
      session,
      project,
      bell: channelBell(
        throughServer(() => server),
        also,
      ),
      turnAtMs: () => startedAtMs,
      ...(config.work_summary !== undefined && { summary: config.work_summary }),
      onReplaced: () => endReplaced(end),
    };
    reach = reachable(local, reached);
  };
  server = await serveMcp({
    channel,
    input: process.stdin,
    output: process.stdout,
    onInitialized: () => void register().catch(note),
    onClosed: () => {
      if (!process.stdin.readableEnded) {
        say('postbell: the connection to the host broke; this channel ends\n');
        process.exitCode = 1;
      }
      end();
    },
  });
}

/** The id is also that of the session's hooks, and the one that mail is meant for. */
function sessionOf({ environment, random }: Local, config: HostConfig): Session {
  const named = hostSession(environment);
  const given = config.session_id ?? (named?.host === 'claude' ? named.id : undefined);
  const id = given ?? hex(random.bytes(8));
  return {
    id,
    host: 'claude',
    process: hostProcess(environment, process.ppid),
    generated: given === undefined,
    principal: principalOf(environment, 'claude', id, { configured: config.principal_id }),
  };
}
