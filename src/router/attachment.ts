// Keeps one session registered: connects, registers, renews the lease, takes hand-offs, and begins again under a new
// generation whenever the router goes away. What is asked of the host is handed in.

import type { Clock } from '../ports/clock.ts';
import type { Random } from '../ports/random.ts';
import { untilBeat } from '../protocol/beat.ts';
import { Fault } from '../protocol/errors.ts';
import { type DeliverFrame, readDeliver } from '../protocol/frames.ts';
import { limits } from '../protocol/limits.ts';
import { isVersion } from '../protocol/semver.ts';
import type { ConnectionKey, Registration } from '../protocol/session.ts';
import { version } from '../protocol/version.ts';
import type { RouterAddress } from './calls.ts';
import { connectRouter, type RouterClient, type RouterFrame } from './client.ts';
import { type Outcome, Taken } from './taken.ts';

const registerWaitMs = 5_000;
const retryMsFirst = 100;
const retryMsMax = 5_000;
const retryJitter = 0.2;
/**
 * A process that was replaced or outranked asks again as often, and never replaces its equal; so does one whose router
 * must be ended first.
 */
const askAgainMs = 30_000;
/** Longer than the router may wait for the store's lock. */
const heartbeatWaitMs = limits.writeLockWaitMs + 2_000;
const askAgainSoonMs = 1_000;
/** A router starts within it, also on a busy machine: until then it is on its way, and nothing to tell a person. */
const routerStartMs = 5_000;
/** Hosts end their servers soon after the first signal. */
const goodbyeMs = 80;

export interface AttachmentOptions {
  address: RouterAddress;
  registration: Registration;
  clock: Clock;
  random: Random;
  /** Starts the installed router where none answers; may be called again. `fresh` where one has served meanwhile. */
  startRouter(fresh: boolean): void;
  /**
   * Rings for a hand-off, and may take as long as it must: an acceptance after the router's time-out is sent all the
   * same. undefined means that no answer may be given.
   */
  take(handOff: DeliverFrame): Promise<Outcome>;
  /** The command that ends the running router, for one that cannot make room by itself. */
  endRouter(): string;
  /** How often to try before a first registration; without it, and after one, there is no end (decision 021). */
  startAttemptsMax?: number;
  /** Told why when the tries are used up: nothing is tried after that. */
  onGaveUp?(why: unknown): void;
  /** Told of each registration that the router took. */
  onRegistered?(): void;
  /** From the first try on, register only where nobody holds the session. */
  ifFree?: boolean;
  /** Of a process that serves nothing but this session: it stops when it is replaced. Others ask again later. */
  onReplaced?(): void;
  onFault(fault: unknown): void;
}

export class Attachment {
  readonly #options: AttachmentOptions;
  readonly #taken: Taken;
  #client: RouterClient | undefined;
  /** Of the live registration. */
  #key: ConnectionKey | undefined;
  #cancelTimer = (): void => {};
  /** Since the router last renewed the lease: who is told again and again that it has expired asks ever more seldom. */
  #failures = 0;
  /** After it was replaced or outranked: register only where nobody holds the session. */
  #ifFree = false;
  #closed = false;
  /** What its person says it works on; empty where nothing. */
  #summary: string;
  /** The router has not heard of the summary yet. */
  #untold = false;
  /** The line that ends an outdated router was given. */
  #complained = false;
  /** A router took this session since one was last started. */
  #wasThere = false;
  #registeredOnce = false;
  /** Since when no router could be reached. */
  #awaySinceMs: number | undefined;

  constructor(options: AttachmentOptions) {
    this.#options = options;
    this.#taken = new Taken(options.take);
    this.#summary = options.registration.work_summary ?? '';
    this.#ifFree = options.ifFree ?? false;
    void this.#connect();
  }

  /** Unregisters; resolves once the router was told, or could not be. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelTimer();
    if (this.#client !== undefined && this.#key !== undefined)
      await this.#client.request(this.#about('disconnect', this.#key), goodbyeMs).catch(() => {});
    this.#client?.close();
  }

  /** Registers anew as something else. The old registration is ended first: it may outrank the new one. */
  async change(over: Pick<Registration, 'bell' | 'adapter_kind'>): Promise<void> {
    this.#options.registration = { ...this.#options.registration, ...over };
    const key = this.#key;
    if (this.#client === undefined || key === undefined || this.#closed) return;
    this.#key = undefined;
    this.#cancelTimer();
    await this.#client.request(this.#about('disconnect', key), registerWaitMs).catch(() => {});
    this.#forget();
    if (!this.#closed) await this.#connect();
  }

  /**
   * Shows what the session works on, at once where it is registered, else with its registration; an empty text clears
   * it. Fault where the router could not be told now: it is told with the next heartbeat.
   */
  async summarize(text: string): Promise<void> {
    this.#summary = text;
    this.#untold = true;
    const client = this.#client;
    if (client === undefined || this.#key === undefined) return;
    try {
      await this.#beat(client, this.#key);
    } catch (error) {
      if (!this.#isStale(error, client)) throw error;
      this.#failed(error);
    }
  }

  async #connect(): Promise<void> {
    const { address, registration } = this.#options;
    try {
      const client = await connectRouter(address.socketPath, this.#options, {
        onFrame: (frame) => this.#onFrame(frame, client),
        onClose: () => this.#onClose(),
      });
      this.#client = client;
      this.#awaySinceMs = undefined;
      const answer = await client.request(this.#introduction(), registerWaitMs);
      if (!isVersion(answer.postbell_version)) {
        this.#refuse();
        return;
      }
      this.#key = { connection_id: String(answer.connection_id), generation: Number(answer.generation) };
      this.#ifFree = this.#options.ifFree ?? false;
      this.#wasThere = true;
      this.#registeredOnce = true;
      this.#complained = false;
      if (this.#closed) {
        this.#forget();
        return;
      }
      this.#options.onRegistered?.();
      const leaseMs = Number(answer.lease_ms);
      this.#renewAfter(this.#untold ? 0 : leaseMs / 2, leaseMs);
      if (registration !== this.#options.registration) await this.change(this.#options.registration);
    } catch (error) {
      this.#failed(error);
    }
  }

  #introduction() {
    const { address, registration } = this.#options;
    const { work_summary: _, ...rest } = registration;
    this.#untold = false;
    return {
      type: 'register',
      auth_token: address.token(),
      ...rest,
      ...(this.#summary !== '' && { work_summary: this.#summary }),
      ...(this.#ifFree && { if_free: true }),
      postbell_version: version,
    };
  }

  /** A router that tells no version, or does not know the word, cannot make room by itself. */
  #refuse(): void {
    this.#forget();
    if (!this.#complained)
      this.#options.onFault(
        new Fault(
          'router_outdated',
          `the running router tells no version; end it: ${this.#options.endRouter()}`,
        ),
      );
    this.#complained = true;
    this.#againAfter(askAgainMs);
  }

  #failed(error: unknown): void {
    this.#forget();
    if (this.#closed) return;
    const code = error instanceof Fault ? error.code : undefined;
    if (code === 'bell_outranked') {
      // Whoever only stands in gives way for good, and looks again by itself.
      if (this.#options.ifFree && this.#options.onReplaced !== undefined) this.#options.onReplaced();
      else this.#yield();
      return;
    }
    if (code === 'unexpected_field') {
      this.#refuse();
      return;
    }
    if (code === 'router_unreachable') {
      this.#options.startRouter(this.#wasThere);
      this.#wasThere = false;
    }
    if (code !== 'router_unreachable' || this.#isMissed()) this.#options.onFault(error);
    this.#backOff(error);
  }

  /** Whether the router has been away for longer than it needs to start. */
  #isMissed(): boolean {
    const nowMs = this.#options.clock.elapsedMs();
    this.#awaySinceMs ??= nowMs;
    return nowMs - this.#awaySinceMs >= routerStartMs;
  }

  #backOff(why?: unknown): void {
    this.#failures += 1;
    if (
      !this.#registeredOnce &&
      this.#failures >= (this.#options.startAttemptsMax ?? Number.POSITIVE_INFINITY)
    ) {
      this.#options.onGaveUp?.(why);
      return;
    }
    const base = Math.min(retryMsFirst * 2 ** (this.#failures - 1), retryMsMax);
    const spread = ((this.#options.random.bytes(1)[0] as number) / 255) * 2 - 1;
    this.#againAfter(Math.round(base * (1 + spread * retryJitter)));
  }

  #yield(): void {
    this.#ifFree = true;
    this.#againAfter(askAgainMs);
  }

  #againAfter(ms: number): void {
    this.#cancelTimer();
    if (!this.#closed) this.#cancelTimer = this.#options.clock.after(ms, () => void this.#connect());
  }

  #renewAfter(ms: number, leaseMs: number): void {
    this.#cancelTimer = this.#options.clock.after(ms, () => void this.#renew(leaseMs));
  }

  /** While the lease lasts, a store that is locked or a router that is slow is asked again. */
  async #renew(leaseMs: number): Promise<void> {
    const client = this.#client;
    if (client === undefined || this.#key === undefined) return;
    const { clock } = this.#options;
    const untilMs = clock.elapsedMs() + leaseMs / 2;
    try {
      const answer = await this.#beat(client, this.#key);
      const nextMs = Number(answer.lease_ms);
      if (client === this.#client) this.#renewAfter(untilBeat(clock.elapsedMs(), nextMs / 2), nextMs);
    } catch (error) {
      if (client !== this.#client) return;
      const passing =
        error instanceof Fault && (error.code === 'store_busy' || error.code === 'router_timeout');
      const leftMs = untilMs - clock.elapsedMs();
      if (passing && leftMs > 0) this.#renewAfter(askAgainSoonMs, 2 * leftMs);
      else this.#failed(error);
    }
  }

  /** A heartbeat, with the summary where the router has not heard of it. */
  async #beat(client: RouterClient, key: ConnectionKey): Promise<Record<string, unknown>> {
    const told = this.#untold ? { work_summary: this.#summary } : {};
    const answer = await client.request({ ...this.#about('heartbeat', key), ...told }, heartbeatWaitMs);
    if (told.work_summary === this.#summary) this.#untold = false;
    this.#failures = 0;
    return answer;
  }

  #about(type: 'heartbeat' | 'disconnect', key: ConnectionKey) {
    const { project, session_id } = this.#options.registration;
    return { type, project, session_id, ...key };
  }

  /** The socket is gone: only a live registration is begun again from here; a failing one does so itself. */
  #onClose(): void {
    if (this.#key === undefined) return;
    this.#forget();
    // The router has gone, which says nothing of this session: it begins anew.
    this.#failures = 0;
    if (!this.#closed) this.#backOff();
  }

  #forget(): void {
    this.#key = undefined;
    this.#client?.close();
    this.#client = undefined;
  }

  #onFrame(frame: RouterFrame, client: RouterClient): void {
    if (client !== this.#client) return;
    if (frame.type === 'session_superseded') {
      this.#forget();
      if (this.#options.onReplaced === undefined) this.#yield();
      else this.#options.onReplaced();
      return;
    }
    const handOff = readDeliver(frame.fields);
    if (handOff !== undefined) void this.#take(handOff, client);
  }

  /** The answer goes to where the hand-off came from, whatever was registered since. */
  async #take(handOff: DeliverFrame, client: RouterClient): Promise<void> {
    const { attempt_id, delivery_id, connection_id, generation } = handOff;
    const outcome = await this.#taken.answer(handOff).catch((error: unknown) => {
      this.#options.onFault(error);
      return { failure_code: 'adapter_error' as const };
    });
    if (outcome === undefined) return;
    const type = 'failure_code' in outcome ? 'host_reject' : 'host_accept';
    const frame = { type, attempt_id, delivery_id, connection_id, generation, ...outcome };
    await client.request(frame, heartbeatWaitMs).catch((error: unknown) => {
      if (this.#isStale(error, client)) this.#failed(error);
    });
  }

  /** The lease ran out while the process stood still, and it has not begun again yet. */
  #isStale(error: unknown, client: RouterClient): boolean {
    return client === this.#client && error instanceof Fault && error.code === 'stale_generation';
  }
}
