// The one file that knows how the product is called: each kind of process as it is composed, over simulated ports.

import { listenerBell } from '../../src/hosts/claude-code/bell.ts';
import { ack } from '../../src/mailbox/ack.ts';
import { acknowledge } from '../../src/mailbox/acknowledge.ts';
import type { Caller, Desk } from '../../src/mailbox/desk.ts';
import { fetchMessage } from '../../src/mailbox/fetch.ts';
import { intake } from '../../src/mailbox/intake.ts';
import { nextBatch } from '../../src/mailbox/listen.ts';
import { runNotifier } from '../../src/mailbox/notifier.ts';
import { poll } from '../../src/mailbox/poll.ts';
import { watchReach } from '../../src/mailbox/reachable.ts';
import { receipts } from '../../src/mailbox/receipts.ts';
import { type ReceiveAnswer, receive } from '../../src/mailbox/receive.ts';
import { type Ringing, reconcile, ringForHandOff } from '../../src/mailbox/ring.ts';
import { send } from '../../src/mailbox/send.ts';
import type { Bell, RingItem, RingOutcome } from '../../src/ports/bell.ts';
import type { Store } from '../../src/ports/store.ts';
import { Fault, isRefusal, type Result } from '../../src/protocol/errors.ts';
import { limits } from '../../src/protocol/limits.ts';
import type { SendRequest } from '../../src/protocol/requests.ts';
import type { Registration } from '../../src/protocol/session.ts';
import { version } from '../../src/protocol/version.ts';
import { Attachment } from '../../src/router/attachment.ts';
import { routerCalls } from '../../src/router/calls.ts';
import { routerServer } from '../../src/router/server.ts';
import { type HostProcess, recordSessionStart, sessionOfHost } from '../../src/sessions/alias.ts';
import { Leases } from '../../src/sessions/leases.ts';
import { beginRun } from '../../src/sessions/router-run.ts';
import { waitForMail } from '../../src/surfaces/hooks/wait.ts';
import type { SessionView, Told } from './checker.ts';
import { pathOf } from './net.ts';
import type { Ports } from './ports.ts';
import type { Process } from './process.ts';

export type { RingItem, RingOutcome, SendRequest };

const token = 'simulated';
const sessionLeaseMs = 120_000;

const addressFor = (process: Process) => ({ socketPath: pathOf(process), token: () => token });

/** Whether the error is one that the product announces: anything else is a defect. */
export function isAnnounced(error: unknown): boolean {
  return error instanceof Fault && error.code !== 'internal_error';
}

/** `postbell router`: says that it runs, closes what was left open, listens, ticks. */
export async function runRouter(
  ports: Ports,
  process: Process,
  on: { fault(error: unknown): void; stop(): void },
): Promise<{ close(): Promise<void> }> {
  const instance = process.name;
  await beginRun(ports, { instance, pid: 1, version, socket: pathOf(process) });
  const { hostOutcomeWaitMs } = limits;
  const server = routerServer({
    ports: { ...ports, leases: new Leases(), instance, hostOutcomeWaitMs },
    token,
    version,
    log: {
      info: () => {},
      warn: (what, fields) =>
        fields?.code === 'internal_error' && on.fault(new Error(`${what} ${JSON.stringify(fields)}`)),
    },
    pid: 1,
    stop: on.stop,
  });
  await server.listen(pathOf(process));
  const look = (onChange: () => void): void => {
    try {
      if (ports.store.changed()) onChange();
    } catch (error) {
      on.fault(error);
    }
  };
  ports.wake.watch(() => look(() => {}));
  const tick = (): void => {
    ports.clock.after(limits.wakeTickMs, tick);
    server.expireLeases().catch(on.fault);
    look(() => ports.wake.touch());
  };
  tick();
  return { close: () => server.close() };
}

export interface Ringer {
  /** What stands between the product and its bell: a host that hangs, refuses or dies. */
  ring(item: RingItem, bell: (item: RingItem) => Promise<RingOutcome>): Promise<RingOutcome>;
}

export interface ServerOptions {
  ports: Ports;
  process: Process;
  session: SessionView;
  host: HostProcess;
  hasBell: boolean;
  ringer: Ringer;
  /** When its agent was last in a turn. */
  turnAtMs(): number;
  startRouter(): void;
  onHanded(frame: {
    attempt_id: string;
    delivery_id: string;
    connection_id: string;
    generation: number;
  }): void;
  onFault(error: unknown): void;
}

export interface Server {
  desk: Desk;
  caller(): Caller & { session: string };
  close(): Promise<void>;
}

/** `postbell mcp`: the session's registration, its notifier and its bell. */
export function runServer(options: ServerOptions): Server {
  const { ports, process, session, host, onFault } = options;
  const desk: Desk = { ...ports, router: routerCalls(addressFor(process), ports) };
  const caller = (): Caller & { session: string } => ({
    transport: 'mcp',
    source_host: 'claude-code',
    session: sessionOfHost(ports.store, host) ?? session.id,
    principal: session.principal,
  });
  const ringing = (): Ringing => ({ caller: { ...caller(), session: session.id }, project: session.project });
  const bell = options.hasBell
    ? hostBell(ports, options.ringer, () => isArmed(ports, session.id))
    : undefined;
  const notifier = bell && runNotifier(desk, ports.locks, ringing(), bell, onFault);
  const without = { adapter_kind: 'poll', bell: 'none' } as const;
  const own = bell && { adapter_kind: bell.describe().adapterKind, bell: bell.describe().bell };
  const registration: Registration = {
    project: session.project,
    principal_id: session.principal,
    session_id: session.id,
    ...(own ?? without),
    host_kind: 'claude',
    lease_ms: sessionLeaseMs,
  };
  const attachment = new Attachment({
    address: addressFor(process),
    clock: ports.clock,
    random: ports.random,
    registration,
    startRouter: options.startRouter,
    endRouter: () => '',
    take: async (frame) => {
      options.onHanded(frame);
      if (bell === undefined) return { failure_code: 'adapter_rejected' };
      const outcome = await ringForHandOff(desk, ringing(), bell, frame, onFault);
      if (outcome.outcome === 'unknown') return undefined;
      if (outcome.outcome === 'rejected') return { failure_code: outcome.code };
      return { content: outcome.content, receipt: outcome.receipt };
    },
    onFault,
  });
  const onChange = (deaf: boolean): void => void attachment.change(deaf ? without : (own ?? without));
  const unwatch = bell && watchReach({ ...ports, bell, turnAtMs: options.turnAtMs, onChange, onFault });
  return {
    desk,
    caller,
    close: async () => {
      unwatch?.();
      notifier?.stop();
      bell?.close('the session\u2019s process ends');
      ports.wake.touch();
      await attachment.close();
    },
  };
}

function hostBell(ports: Ports, ringer: Ringer, armed?: () => boolean): Bell {
  const bell = listenerBell(ports, armed);
  return { ...bell, ring: (item, abort) => ringer.ring(item, (asked) => bell.ring(asked, abort)) };
}

/** Whether a listener of the session waits now. */
function isArmed({ store, locks }: Ports, sessionId: string): boolean {
  const ids = store.read((tx) => tx.identity.chain(sessionId));
  return ids.some((id) => {
    const lock = locks.tryTake(`listener-${id}`);
    lock?.release();
    return lock === undefined;
  });
}

export interface ListenerOptions {
  ports: Ports;
  session: SessionView;
  host: HostProcess;
  ringer: Ringer;
  unattended: boolean;
  hostAlive(): boolean;
  print(text: string): void;
}

/** `postbell wait`. */
export function runListener(options: ListenerOptions): Promise<0 | 2> {
  const { ports, host, session, ringer, hostAlive, unattended, print } = options;
  const { id, principal, project } = session;
  const caller = { transport: 'cli', source_host: 'claude-code', session: id, principal } as const;
  return waitForMail({
    desk: ports,
    locks: ports.locks,
    session: id,
    bell: hostBell(ports, ringer),
    ringing: () => Promise.resolve({ caller, project }),
    host: `${host.pid}-${host.start_time}`,
    hostAlive,
    unattended,
    renewAfterMs: 3_000_000,

    stoppedAtMs: undefined,
    print,
    ended: new AbortController().signal,
  });
}

/** The notification that a printed text names; none in the text that only asks to be armed again. */
export function noticeIn(text: string): string | undefined {
  return /notification_id="([^"]+)"/.exec(text)?.[1];
}

/** `postbell hook session-start` */
export function runSessionStart(
  ports: Ports,
  host: HostProcess,
  start: { session_id: string; source: string },
): Promise<void> {
  return recordSessionStart(ports, host, start);
}

/** What a command or a tool call can do. */
export function callsOf(desk: Desk, caller: Caller) {
  return {
    send: (request: SendRequest) => send(desk, request, caller),
    receive: (project: string, limit: number): Result<ReceiveAnswer> =>
      receive(desk, { project, limit }, caller),
    acknowledge: (project: string, messageIds: readonly string[]) =>
      acknowledge(
        desk,
        { project, messages: messageIds.map((msg_id) => ({ sender: 'local', msg_id })) },
        caller,
      ),
    intake: (scope: Scope, key: string) =>
      intake(desk, { ...scope, state: 'ingested', idempotency_key: key }, caller),
    ack: (scope: Scope, key: string) => ack(desk, { ...scope, idempotency_key: key }, caller),
    fetch: (scope: Scope) => fetchMessage(desk, scope),
    receipts: (scope: Scope) => receipts(desk, scope),
    poll: (project: string, recipient: string, cursor: string | undefined) =>
      poll(desk, { project, recipient, ...(cursor !== undefined && { cursor }), wait_ms: 500 }),
  };
}

export interface Scope {
  project: string;
  recipient: string;
  message_id: string;
}

/** A desk for a command: its router calls go over a connection of their own. */
export function commandDesk(ports: Ports, process: Process): Desk {
  return { ...ports, router: routerCalls(addressFor(process), ports) };
}

/** The message that a send's answer names as stored; undefined where nothing was promised. */
export function storedBy(answer: unknown): string | undefined {
  if (!isRefusal(answer)) return (answer as { message_id: string }).message_id;
  const kept = answer.details?.message_id;
  return answer.code === 'idempotency_conflict' || typeof kept !== 'string' ? undefined : kept;
}

/** What the answer of a send or of `receipts` says of a message. */
export function toldBy(answer: unknown): Told {
  if (isRefusal(answer)) return { native: false };
  const said = answer as {
    native_delivery?: unknown;
    quieted?: string;
    delivery_state?: string;
    recipient_presence?: string;
    fallback?: { delivery_id: string };
    receipts?: { receipt_kind: string }[];
  };
  // Where nothing could be read after the commit, all that is said is that it is stored.
  const unread = said.recipient_presence === 'not_checked' && said.delivery_state === 'receiver_stored';
  return {
    native: said.native_delivery !== undefined,
    ...(said.quieted !== undefined && { quieted: said.quieted }),
    ...(said.fallback !== undefined && { fallbackOf: said.fallback.delivery_id }),
    ...(said.receipts !== undefined && {
      expired: said.receipts.some((fact) => fact.receipt_kind === 'expired'),
    }),
    ...(said.delivery_state !== undefined && !unread && { state: said.delivery_state }),
  };
}

const callerOf = (session: SessionView): Caller & { session: string } => ({
  transport: 'mcp',
  source_host: 'claude-code',
  session: session.id,
  principal: session.principal,
});

class Undone extends Error {}

export interface NotifierView {
  act: 'ring' | 'wait' | 'idle';
  /** With `ring`: what its reservation would cover. */
  covers: string[];
}

/** What the notifier of a session would do now; nothing of it is kept. */
export async function viewOfNotifier(ports: Ports, session: SessionView): Promise<NotifierView> {
  const covers: string[] = [];
  const store: Store = {
    ...ports.store,
    write: async (work) => {
      await ports.store.write((tx): void => {
        work({
          ...tx,
          notices: {
            ...tx.notices,
            cover: (_, deliveryIds) => void covers.push(...deliveryIds),
          },
        });
        throw new Undone();
      });
      throw new Undone();
    },
  };
  const caller = callerOf(session);
  const never: Bell = {
    ...listenerBell(ports),
    ring: () => Promise.reject(new Error('a view rings nothing')),
  };
  const desk: Desk = {
    ...ports,
    store,
    router: { notify: () => Promise.reject(new Undone()), discover: () => Promise.reject(new Undone()) },
  };
  try {
    const untilMs = await reconcile(desk, { caller, project: session.project }, never, () => {});
    return { act: untilMs === undefined ? 'idle' : 'wait', covers };
  } catch (error) {
    if (error instanceof Undone) return { act: 'ring', covers };
    throw error;
  }
}

/** What the inbox of a session answers: ids in order, and how much there is in all. */
export function viewOfInbox(ports: Ports, session: SessionView): { messageIds: string[]; count: number } {
  const caller = callerOf(session);
  const answer = receive(ports, { project: session.project, limit: 100 }, caller);
  if (isRefusal(answer)) throw new Error(answer.message);
  return {
    messageIds: answer.messages.map((message) => message.message_id),
    count: answer.messages.length + answer.remaining,
  };
}

/** Whether the listener of the session would print something now, and how far it would go. */
export function viewOfListener(ports: Ports, session: string): { prints: boolean } | undefined {
  const batch = nextBatch(ports, session);
  return batch && { prints: batch.text !== undefined };
}

/** What the newest reservation of the session covers that still waits. */
export function viewOfCoverage(ports: Ports, root: string): readonly string[] {
  return ports.store.read((tx) => tx.notices.newest(root)?.covered ?? []);
}
