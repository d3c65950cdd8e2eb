// What makes one session reachable: its registration at the router, its bell, and the notifier that rings it.

import { listenerBell } from '../hosts/claude-code/bell.ts';
import type { RingAgain } from '../mailbox/failed.ts';
import { listenerLockName, type Notifier, runNotifier } from '../mailbox/notifier.ts';
import { watchReach } from '../mailbox/reachable.ts';
import { ringAgain, ringForHandOff } from '../mailbox/ring.ts';
import { say } from '../platform/stderr.ts';
import type { Bell } from '../ports/bell.ts';
import { failureLine } from '../protocol/errors.ts';
import type { HostKind, Registration } from '../protocol/session.ts';
import { Attachment, type AttachmentOptions } from '../router/attachment.ts';
import type { HostProcess } from '../sessions/alias.ts';
import type { McpServer } from '../surfaces/mcp/server.ts';
import { note } from './failure.ts';
import { listenerRuns } from './identity.ts';
import { endRouterLine, routerStarter } from './launch.ts';
import type { Local } from './local.ts';

/** Renewed at half of it: one heartbeat a minute. A process that dies is noticed by its socket, at once. */
const leaseMs = 120_000;

export interface Session {
  /** The id it was started under. */
  id: string;
  host: HostKind;
  /** The host's own process, by which hooks and server know each other. */
  process: HostProcess | undefined;
  /** Made up here: no hook can find it, so that nothing but a channel can ring it. */
  generated: boolean;
  principal: string;
}

export interface Reach {
  session: Session;
  project: string;
  /** Absent where nothing can ring the session. */
  bell: Bell | undefined;
  /** When a turn was last known to run, by the clock that nobody sets. */
  turnAtMs(): number;
  summary?: string;
  /** Of a process that serves nothing but this session. */
  onReplaced?(): void;
  /** Of one that tells somebody whether it could begin. */
  start?: Pick<AttachmentOptions, 'startAttemptsMax' | 'onRegistered' | 'onGaveUp'>;
  /** Registers only where nobody else holds the session. */
  ifFree?: boolean;
  /** Where nobody reads stderr: why the session could not be registered, or a hand-off not answered. */
  onFault?(error: unknown): void;
}

/** The session's registration and its notifier. */
export function reachable(local: Local, reach: Reach) {
  const { session, project, bell, turnAtMs, summary, onReplaced, start, ifFree = false } = reach;
  const { onFault = (error) => say(failureLine(error, false)) } = reach;
  const ringing = { caller: { session: session.id, principal: session.principal }, project };
  const notifier: Notifier | undefined = bell && runNotifier(local, local.locks, ringing, bell, note);
  const without = { adapter_kind: 'poll', bell: 'none' } as const;
  const own = bell && { adapter_kind: bell.describe().adapterKind, bell: bell.describe().bell };
  const registration: Registration = {
    project,
    principal_id: session.principal,
    session_id: session.id,
    ...(own ?? without),
    host_kind: session.host,
    ...(summary !== undefined && { work_summary: summary }),
    lease_ms: leaseMs,
  };
  const attachment = new Attachment({
    address: local.address,
    clock: local.clock,
    random: local.random,
    registration,
    startRouter: routerStarter(local, note),
    take: async (handOff) => {
      if (bell === undefined) return { failure_code: 'adapter_rejected' };
      const outcome = await ringForHandOff(local, ringing, bell, handOff, note);
      if (outcome.outcome === 'unknown') return undefined;
      if (outcome.outcome === 'rejected') return { failure_code: outcome.code };
      return { content: outcome.content, receipt: outcome.receipt };
    },
    endRouter: () => endRouterLine(local),
    ...(onReplaced && { onReplaced }),
    ...start,
    ifFree,
    onFault,
  });
  const onChange = (deaf: boolean): void => void attachment.change(deaf ? without : (own ?? without));
  const unwatch = bell && watchReach({ ...local, bell, turnAtMs, onChange, onFault: note });
  return {
    summarize: (summary: string) => attachment.summarize(summary),
    ringAgain: bell && ((): ReturnType<RingAgain> => ringAgain(local, ringing, bell, note)),
    close: async () => {
      unwatch?.();
      notifier?.stop();
      bell?.close('the session\u2019s process ends');
      local.wake.touch();
      await attachment.close();
    },
  };
}

/** What is said at the start of a server whose host names no session. */
export const unfindable = (id: string, isChannel: boolean): string =>
  `postbell: the host names no session id; this one is ${id}, which no hook can find and ${isChannel ? 'only the channel' : 'nothing'} can ring\n`;

/** The way to the session's host, once its server is there. */
export const throughServer =
  (server: () => Pick<McpServer, 'notify'> | undefined): McpServer['notify'] =>
  (method, params) =>
    server()?.notify(method, params) ?? Promise.reject(new Error('the server has not begun'));

/** The listener bell, where the host runs a listener for the session. */
export function sessionListener(local: Local, session: Session): Bell | undefined {
  const runs =
    session.host === 'claude' && !session.generated && listenerRuns(local.environment, session.process);
  return runs ? listenerBell(local, () => isArmed(local, session.id)) : undefined;
}

/** Whether a listener of the session waits now. */
function isArmed(local: Local, sessionId: string): boolean {
  const ids = local.store.read((tx) => tx.identity.chain(sessionId));
  return ids.some((id) => local.locks.isHeld(listenerLockName(id)));
}
