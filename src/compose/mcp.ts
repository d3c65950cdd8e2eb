// `postbell mcp`: the server of one agent session. It serves the tools at once; it registers the session and rings
// for it once the client said that it is initialized.

import { parseArgs } from 'node:util';
import { channel, channelBell } from '../hosts/claude-code/channel.ts';
import type { Caller } from '../mailbox/desk.ts';
import { type Environment, progressIntervalMs } from '../platform/environment.ts';
import { say } from '../platform/stderr.ts';
import type { Bell } from '../ports/bell.ts';
import { Fault, isRefusal, Refusal, type Result } from '../protocol/errors.ts';
import { hex } from '../protocol/id.ts';
import { refusedRecipient } from '../protocol/reminder.ts';
import { isSessionId } from '../protocol/scope.ts';
import { sessionOfHost } from '../sessions/alias.ts';
import { type McpServer, serveMcp } from '../surfaces/mcp/server.ts';
import { endOnSignal, endWithHost } from './ending.ts';
import { note, orFail } from './failure.ts';
import { channelsOn, hostProcess, hostSession, pinIgnored, pinnedSession } from './identity.ts';
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
}

function readFlags(words: readonly string[]): Flags {
  const usage = new Fault('usage', 'mcp takes --session ID and --no-register');
  let values: { session?: string; 'no-register'?: boolean };
  try {
    const options = { session: { type: 'string' }, 'no-register': { type: 'boolean' } } as const;
    ({ values } = parseArgs({ args: [...words], options }));
  } catch {
    throw usage;
  }
  const session = values.session === '' ? undefined : values.session;
  if (session !== undefined && !isSessionId(session)) throw usage;
  return { session, register: values['no-register'] !== true };
}

async function serve(flags: Flags): Promise<void> {
  const local = await openLocal();
  const session = await sessionOf(local, flags.session);
  const isChannel = flags.register && session.host === 'claude' && channelsOn(local.environment);
  sayFirst(local.environment, session, isChannel);
  const bound = boundProject(local.environment, () => server?.roots() ?? Promise.resolve([]));
  let initialized = false;
  let reach: ReturnType<typeof reachable> | undefined;
  /** Whoever finds the project first, the start or a later call, makes the session reachable in it. */
  const project = async (): Promise<Result<string>> => {
    const found = await bound();
    if (!isRefusal(found) && initialized && flags.register)
      reach ??= reachable(local, { session, project: found, bell: bell(), turnAtMs: () => turn.atMs });
    return found;
  };
  let server: McpServer | undefined;
  const bell = (): Bell | undefined =>
    isChannel ? channelBell(throughServer(() => server)) : sessionListener(local, session);
  const turn = { atMs: local.clock.elapsedMs() };
  const caller = (): Caller & { session: string } => ({
    transport: 'mcp',
    source_host: server?.clientName() ?? 'mcp',
    session: (session.process && sessionOfHost(local.store, session.process)) ?? session.id,
    principal: session.principal,
  });
  // With its connection or at a signal, whichever comes first; later work is left to the store.
  const end = endOnSignal(async () => {
    unwatch();
    await reach?.close();
    local.close();
  });
  const unwatch = endWithHost(local, session.process, end);
  server = await serveMcp({
    context: {
      desk: local,
      caller,
      inTurn: () => {
        turn.atMs = local.clock.elapsedMs();
      },
      project,
      events: session.host === 'claude' ? { intervalMs: progressIntervalMs(local.environment) } : undefined,
      get ringAgain() {
        return reach?.ringAgain;
      },
      summarize: async (summary) => {
        const found = await project();
        if (isRefusal(found)) return found;
        if (reach === undefined)
          return new Refusal('recipient_unavailable', 'this session is not registered', {
            reason: 'not_live',
          });
        await reach.summarize(summary);
        return { summary };
      },
    },
    firstNote: session.generated ? unfindable(session.id, isChannel).trim() : undefined,
    ...(isChannel && { channel }),
    input: process.stdin,
    output: process.stdout,
    onInitialized: () => {
      initialized = true;
      project().then((found) => isRefusal(found) && note(found), note);
    },
    onClosed: () => {
      if (!process.stdin.readableEnded) say('postbell: the connection to the host broke; this server ends\n');
      end();
    },
  });
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
function sayFirst(environment: Environment, session: Session, isChannel: boolean): void {
  const ignored = recipientIgnored(environment);
  if (ignored !== undefined) say(`${refusedRecipient(ignored)}\n`);
  const unpinned = pinIgnored(environment);
  if (unpinned !== undefined) say(`POSTBELL_SESSION ignored: ${unpinned}\n`);
  if (session.generated) say(unfindable(session.id, isChannel));
}
