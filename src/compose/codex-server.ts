// `postbell mcp` as a server of Codex, which starts one for each thread and tells it nothing at the start. Whose it is, its hook
// says (`bind_codex_session`); who calls, Codex says with each call, where no model can write. The thread's companion holds
// the registration; where none does, this server rings the thread itself.

import { queueBell } from '../hosts/codex/bell.ts';
import { queueNotice } from '../hosts/codex/queue.ts';
import type { Caller } from '../mailbox/desk.ts';
import { ringAgain } from '../mailbox/ring.ts';
import { processEnvironment, progressIntervalMs, setting } from '../platform/environment.ts';
import { isPlace } from '../platform/look.ts';
import type { Bell } from '../ports/bell.ts';
import { untilBeat } from '../protocol/beat.ts';
import { isRefusal, Refusal, type Result } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import { sessionScopedPrincipal } from '../protocol/scope.ts';
import { isThreadId, sameThread } from '../protocol/thread.ts';
import { recordHostPlace } from '../sessions/release.ts';
import type { CallMeta } from '../surfaces/mcp/server.ts';
import type { HostEvents, ToolContext } from '../surfaces/mcp/tools.ts';
import { codexHost } from './codex-host.ts';
import { codexEnvironment, codexHome } from './codex-place.ts';
import { Companions } from './companions.ts';
import { note } from './failure.ts';
import { hostSession, pinnedSession } from './identity.ts';
import type { Local } from './local.ts';
import { projectOf } from './project.ts';
import { reachable } from './reachable.ts';
import { isUntrusted, recipientOf } from './recipient.ts';

/** As Codex introduces itself to a server. */
export const codexClient = 'codex-mcp-client';

/** How often a bound server looks whether anybody rings its thread. */
const lookMs = 30_000;

interface Bound {
  thread: string;
  directory: string | undefined;
  project: Result<string>;
}

type Known = Pick<Caller, 'session' | 'principal'> & { sub_agent?: string };

export class CodexServer {
  readonly #local: Local;
  readonly #host = codexHost();
  readonly #events: HostEvents;
  #bound: Bound | undefined;
  #binding: Promise<Result<object>> | undefined;
  #bell: Bell | undefined;
  #reach: ReturnType<typeof reachable> | undefined;
  #cancelLook = (): void => {};
  #turnAtMs: number;

  constructor(local: Local) {
    this.#local = local;
    this.#turnAtMs = local.clock.elapsedMs();
    this.#events = { intervalMs: progressIntervalMs(local.environment) };
  }

  /** What the tools of one call are called with. */
  context(meta: CallMeta): Result<ToolContext> {
    const known = this.#callerBy(meta);
    if (isRefusal(known)) return known;
    const caller: Caller = { transport: 'mcp', source_host: codexClient, ...known };
    return {
      desk: this.#local,
      caller: () => caller,
      inTurn: () => {
        this.#turnAtMs = this.#local.clock.elapsedMs();
      },
      project: () => this.#projectOf(known.session),
      events: this.#events,
      ringAgain: this.#ringAgain(),
      summarize: (summary) => this.#summarize(summary),
      // Loaded by the first call, as in the server of any other session.
      pairing: async () => (await import('./pairing.ts')).callsOf(this.#local),
      bind: (thread, directory) => this.#bind(thread, directory, meta),
    };
  }

  async close(): Promise<void> {
    this.#cancelLook();
    this.#local.wake.touch();
    await this.#reach?.close();
  }

  /** The root thread is the session; a sub-agent acts for it. */
  #callerBy(meta: CallMeta): Result<Known> {
    const thread = threadIn(meta.threadId);
    const root = threadIn(meta.sessionId) ?? thread;
    const bound = this.#bound?.thread;
    if (root !== undefined && bound !== undefined && !sameThread(root, bound))
      return new Refusal('session_identity_conflict', 'this server is bound to another thread');
    // A pinned id names the same session: the two are linked when the thread is bound.
    // Codex writes it in lower case: an unbound server that is told another spelling is of the same thread.
    const session = bound ?? this.#pinned ?? root?.toLowerCase() ?? this.#around;
    if (session === undefined) return {};
    const subAgent = thread !== undefined && root !== undefined && !sameThread(thread, root);
    const principal = this.#principal(session);
    return { session, ...(principal !== undefined && { principal }), ...(subAgent && { sub_agent: thread }) };
  }

  /** Undefined where the owner's word on it cannot be trusted: then it is nobody else in silence. */
  #principal(session: string): string | undefined {
    const situation = { workspace: this.#bound?.directory, shared: this.#host?.isShared ?? false };
    const recipient = recipientOf(this.#local.environment, 'codex', situation);
    if (isUntrusted(recipient)) return undefined;
    return recipient.named ?? sessionScopedPrincipal('codex', session);
  }

  /** A name that was pinned for an app-server which terminals share is nobody's in particular. */
  get #pinned(): string | undefined {
    return this.#host?.isShared ? undefined : pinnedSession(this.#local.environment);
  }

  /** Where a call names nobody; never that of a terminal whose app-server others share. */
  get #around(): string | undefined {
    return this.#host?.isShared ? undefined : hostSession(this.#local.environment)?.id;
  }

  /** That of the thread's directory, never of where this process happens to run. */
  async #projectOf(session: string | undefined): Promise<Result<string>> {
    if (this.#bound !== undefined) return this.#bound.project;
    const { store, clock } = this.#local;
    const live =
      session === undefined
        ? []
        : store.read((tx) => tx.sessions.liveAnywhere({ ids: tx.identity.chain(session) }, clock.nowMs()));
    const [project, ...others] = new Set(live.map((one) => one.project));
    if (project !== undefined && others.length === 0) return project;
    return new Refusal('project_unavailable', 'no project is bound to this session; pass project');
  }

  /** Once. A hook's call in the server of a sub-agent names the root thread, and binds nothing: no fault of the hook. */
  async #bind(thread: string, directory: string | undefined, meta: CallMeta): Promise<Result<object>> {
    const own = threadIn(meta.threadId);
    if (!isThreadId(thread))
      return new Refusal('invalid_request', 'thread_id is no thread id', { field: 'thread_id' });
    if (this.#bound !== undefined)
      return sameThread(this.#bound.thread, thread)
        ? {}
        : new Refusal('session_identity_conflict', 'this server is bound to another thread');
    if (own !== undefined && !sameThread(own, thread))
      return meta.itemId === undefined && meta.callId === undefined
        ? {}
        : new Refusal('session_identity_conflict', 'this server is of another thread');
    if (directory !== undefined && !isPlace(directory))
      return new Refusal('invalid_request', 'cwd is no absolute path of a directory that is there', {
        field: 'cwd',
      });
    this.#binding ??= this.#bindTo(thread, directory).finally(() => {
      this.#binding = undefined;
    });
    await this.#binding;
    return this.#bind(thread, directory, meta);
  }

  async #bindTo(thread: string, directory: string | undefined): Promise<object> {
    const project =
      directory === undefined
        ? new Refusal('project_unavailable', 'no project is bound to this session; pass project')
        : await projectOf(directory).catch(
            () =>
              new Refusal('project_unavailable', 'the project of this thread cannot be known; pass project'),
          );
    const pinned = this.#pinned;
    if (pinned !== undefined && pinned !== thread)
      await this.#local.store.write((tx) => tx.identity.link(thread, pinned));
    this.#bound = { thread, directory, project };
    this.#bell = this.#queueBell(thread);
    // Another process of ours rings for this host.
    if (setting(this.#local.environment, 'POSTBELL_LISTENER') !== 'off' && process.platform !== 'win32')
      this.#lookAfter(limits.companionWaitMs);
    return {};
  }

  /** None where the thread takes an item of its queue and ends. */
  #queueBell(thread: string): Bell | undefined {
    if (this.#host?.isExec || process.platform === 'win32') return undefined;
    const codex = {
      file: this.#host?.file ?? 'codex',
      environment: codexEnvironment(processEnvironment, codexHome(processEnvironment)),
    };
    return queueBell({
      thread,
      queue: (notice, ended) => queueNotice(this.#local.clock, codex, { thread, notice, ended }),
    });
  }

  #ringAgain(): ToolContext['ringAgain'] {
    const [bound, bell] = [this.#bound, this.#bell];
    if (bound === undefined || bell === undefined || isRefusal(bound.project)) return undefined;
    const principal = this.#principal(bound.thread);
    if (principal === undefined) return undefined;
    const caller = { session: bound.thread, principal };
    const ringing = { caller, project: bound.project };
    return () => ringAgain(this.#local, ringing, bell, note);
  }

  async #summarize(summary: string): Promise<Result<object>> {
    const { thread } = this.#bound ?? {};
    if (this.#reach !== undefined) {
      await this.#reach.summarize(summary);
      return { summary };
    }
    const companions = thread === undefined ? undefined : new Companions(this.#local.places, thread);
    const heard = (await companions?.tellSummary(summary)) ?? 'none';
    if (heard === 'none')
      return new Refusal('recipient_unavailable', 'this session is not registered', { reason: 'not_live' });
    if (heard !== 'heard')
      return new Refusal('store_busy', 'the companion of this session has not shown it in time');
    return { summary };
  }

  #lookAfter(ms: number): void {
    this.#cancelLook();
    this.#cancelLook = this.#local.clock.after(ms, () => {
      this.#lookAfter(untilBeat(this.#local.clock.elapsedMs(), lookMs));
      this.#standIn().catch(note);
    });
  }

  /** Rings the thread where nobody does, until a companion takes it over. */
  async #standIn(): Promise<void> {
    const bound = this.#bound;
    if (this.#reach !== undefined || bound === undefined || isRefusal(bound.project)) return;
    const { store, clock } = this.#local;
    const { thread, project } = bound;
    const principal = this.#principal(thread);
    if (principal === undefined) return;
    const held = store.read((tx) => tx.sessions.live(project, tx.identity.chain(thread), clock.nowMs()));
    if (held !== undefined) return;
    const program = this.#host?.file ?? 'codex';
    await recordHostPlace(this.#local, thread, { program, home: codexHome(processEnvironment) ?? null });
    const session = {
      id: thread,
      host: 'codex',
      process: this.#host?.process,
      generated: false,
      principal,
    } as const;
    this.#reach = reachable(this.#local, {
      session,
      project,
      bell: this.#queueBell(thread),
      turnAtMs: () => this.#turnAtMs,
      ifFree: true,
      onReplaced: () => this.#yield(),
    });
  }

  #yield(): void {
    const former = this.#reach;
    this.#reach = undefined;
    former?.close().catch(note);
  }
}

const threadIn = (value: unknown): string | undefined =>
  typeof value === 'string' && isThreadId(value) ? value : undefined;
