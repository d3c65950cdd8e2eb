// `postbell mcp`: the server of one agent session. It serves the tools at once; it registers the session and rings
// for it once the client said that it is initialized.

import { parseArgs } from 'node:util';
import { channel, channelBell } from '../hosts/claude-code/channel.ts';
import type { Caller } from '../mailbox/desk.ts';
import { type Environment, progressIntervalMs } from '../platform/environment.ts';
import { setMark } from '../platform/marks.ts';
import { say } from '../platform/stderr.ts';
import type { Bell } from '../ports/bell.ts';
import { Fault, isRefusal, Refusal, type Result } from '../protocol/errors.ts';
import { hex } from '../protocol/id.ts';
import { isSessionId } from '../protocol/scope.ts';
import { sessionOfHost } from '../sessions/alias.ts';
import { type McpServer, serveMcp } from '../surfaces/mcp/server.ts';
import type { ToolContext } from '../surfaces/mcp/tools.ts';
import { isChildOfCodex } from './codex-host.ts';
import { CodexServer, codexClient } from './codex-server.ts';
import { endOnSignal, endWithHost } from './ending.ts';
import { note, orFail } from './failure.ts';
import { channelsOn, hostProcess, hostSession, pinIgnored, pinnedSession } from './identity.ts';
import { toolsMark } from './injected.ts';
import { type Local, openLocal } from './local.ts';
import { boundProject } from './project.ts';
import { reachable, type Session, sessionListener, throughServer, unfindable } from './reachable.ts';
import { principalOf, recipientIgnored } from './recipient.ts';

export function main(words: readonly string[]): Promise<void> {
  return orFail(words, async (rest) => {
    await serve(readFlags(rest));
  });
}

interface Flags {
  session: string | undefined;
  register: boolean;
  /** Registers, on a system where a session can be rung. */
  reachable: boolean;
  /** Where the session's host works, as the runner that started it says. */
  workspace: string | undefined;
}

function readFlags(words: readonly string[]): Flags {
  const usage = new Fault('usage', 'mcp takes --session ID and --no-register');
  let values: { session?: string; 'no-register'?: boolean; workspace?: string };
  try {
    const options = {
      session: { type: 'string' },
      'no-register': { type: 'boolean' },
      workspace: { type: 'string' },
    } as const;
    ({ values } = parseArgs({ args: [...words], options }));
  } catch {
    throw usage;
  }
  const session = values.session === '' ? undefined : values.session;
  if (session !== undefined && !isSessionId(session)) throw usage;
  const register = values['no-register'] !== true;
  const reachable = register && process.platform !== 'win32';
  return { session, register, reachable, workspace: values.workspace };
}

async function serve(flags: Flags): Promise<void> {
  const local = await openLocal();
  const session = await sessionOf(local, flags.session);
  // Codex has no channels, whatever a variable says that was meant for another host.
  const isChannel =
    flags.reachable && session.host === 'claude' && channelsOn(local.environment) && !isChildOfCodex();
  sayFirst(local.environment);
  let server: McpServer | undefined;
  const own = ownSession(local, { session, flags, isChannel, server: () => server });
  let codex: CodexServer | undefined;
  // With its connection or at a signal, whichever comes first; later work is left to the store.
  const end = endOnSignal(async () => {
    unwatch();
    await Promise.all([own.close(), codex?.close()]);
    local.close();
  });
  const unwatch = endWithHost(local, session.process, end);
  const isUnfindable = (): boolean => session.generated && codex === undefined;
  server = await serveMcp({
    context: (meta) => codex?.context(meta) ?? own.context,
    firstNote: () => (isUnfindable() ? unfindable(session.id, isChannel).trim() : undefined),
    ...(isChannel && { channel }),
    input: process.stdin,
    output: process.stdout,
    onListed: () => {
      if (!flags.register) setMark(toolsMark(local.places, session.id));
    },
    onInitialized: () => {
      // Its hooks say whose server this is. One that was injected was told so at its start.
      const ofThread =
        server?.clientName() === codexClient &&
        flags.register &&
        flags.session === undefined &&
        hostSession(local.environment)?.host !== 'claude';
      if (ofThread) codex = new CodexServer(local);
      else own.begin();
      if (isUnfindable()) say(unfindable(session.id, isChannel));
    },
    onClosed: () => {
      if (!process.stdin.readableEnded) say('postbell: the connection to the host broke; this server ends\n');
      end();
    },
  });
}

/** A thread whose name alone stands in the environment is not this server's: its hook would have to bind it. */
const isUnbound = ({ environment }: Local, { session }: Flags): boolean =>
  (session ?? pinnedSession(environment)) === undefined && hostSession(environment)?.host === 'codex';

interface Own {
  session: Session;
  flags: Flags;
  isChannel: boolean;
  server(): McpServer | undefined;
}

/** The one session that the server is of from its start on. */
function ownSession(local: Local, { session, flags, isChannel, server }: Own) {
  const at = flags.workspace ?? local.environment.CLAUDE_PROJECT_DIR;
  const bound = boundProject(
    { ...local.environment, CLAUDE_PROJECT_DIR: at },
    () => server()?.roots() ?? Promise.resolve([]),
  );
  let initialized = false;
  const registers = flags.reachable && !isUnbound(local, flags);
  let reach: ReturnType<typeof reachable> | undefined;
  const turn = { atMs: local.clock.elapsedMs() };
  const bell = (): Bell | undefined =>
    isChannel ? channelBell(throughServer(server)) : sessionListener(local, session);
  /** Whoever finds the project first, the start or a later call, makes the session reachable in it. */
  const project = async (): Promise<Result<string>> => {
    const found = await bound();
    if (!isRefusal(found) && initialized && registers)
      reach ??= reachable(local, { session, project: found, bell: bell(), turnAtMs: () => turn.atMs });
    return found;
  };
  const context: ToolContext = {
    desk: local,
    caller: (): Caller & { session: string } => ({
      transport: 'mcp',
      source_host: server()?.clientName() ?? 'mcp',
      session: (session.process && sessionOfHost(local.store, session.process)) ?? session.id,
      principal: session.principal,
    }),
    inTurn: () => {
      turn.atMs = local.clock.elapsedMs();
    },
    project,
    events: session.host === 'claude' ? { intervalMs: progressIntervalMs(local.environment) } : undefined,
    get ringAgain() {
      return reach?.ringAgain;
    },
    // Loaded by the first call: the cryptography takes memory that no idle session needs.
    pairing: async () => (await import('./pairing.ts')).callsOf(local),
    summarize: async (summary) => {
      const found = await project();
      return isRefusal(found) ? found : summarize(reach, summary);
    },
  };
  return {
    context,
    begin: () => {
      initialized = true;
      project().then((found) => isRefusal(found) && note(found), note);
    },
    close: async () => {
      await reach?.close();
    },
  };
}

async function summarize(reach: ReturnType<typeof reachable> | undefined, summary: string) {
  if (reach === undefined)
    return new Refusal('recipient_unavailable', 'this session is not registered', { reason: 'not_live' });
  await reach.summarize(summary);
  return { summary };
}

/** A pinned id and the host's own id name one session. */
async function sessionOf(local: Local, flag: string | undefined): Promise<Session> {
  const { environment, random, store } = local;
  const named = hostSession(environment);
  const pinned = flag ?? pinnedSession(environment);
  const id = pinned ?? named?.id ?? hex(random.bytes(8));
  // Only Claude Code has channels.
  const host = named?.host ?? (channelsOn(environment) ? 'claude' : 'other');
  if (pinned !== undefined && named !== undefined && pinned !== named.id)
    await store.write((tx) => tx.identity.link(named.id, pinned));
  return {
    id,
    host,
    process: named?.host === 'claude' ? hostProcess(environment, process.ppid) : undefined,
    generated: pinned === undefined && named === undefined,
    principal: principalOf(environment, host, id),
  };
}

/** What a person must know of this start; a host shows it in its log. */
function sayFirst(environment: Environment): void {
  const ignored = recipientIgnored(environment);
  if (ignored !== undefined) say(`${ignored}\n`);
  const unpinned = pinIgnored(environment);
  if (unpinned !== undefined) say(`POSTBELL_SESSION ignored: ${unpinned}\n`);
}
