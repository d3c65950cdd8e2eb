// A relay as relay.md says it behaves, in memory and on a clock that a test moves: for scenes of the link alone. The real one has
// its own suites.

import type { LeasedItem, Relay, Signer } from '../../src/ports/relay.ts';
import { RelayFailure } from '../../src/ports/relay.ts';
import type { FakeClock } from '../contract/clock.ts';

const leaseMs = 30_000;

interface Held {
  seq: number;
  id: string;
  body: Uint8Array;
  atMs: number;
  untilMs: number;
  freeMs: number;
  attempt: number;
}

interface Queue {
  door: boolean;
  gone: boolean;
  drainedMs: number;
  card: Uint8Array | undefined;
  items: Held[];
}

export interface Posted {
  queue: string;
  id: string;
  body: Uint8Array;
}

type Verdict = RelayFailure | 'lost' | undefined;

export class ModelRelay {
  readonly origin: string;
  readonly queues = new Map<string, Queue>();
  /** Every post that came, taken or not, in order. */
  readonly posts: Posted[] = [];
  /** Where set, every call fails so. */
  down: RelayFailure | undefined;
  /** Decides for each post; `lost` says that it was taken and drops it. */
  onPost: (post: Posted) => Verdict | Promise<Verdict> = () => undefined;
  /** Decides for each registration of a queue. */
  onRegister: (queue: string) => RelayFailure | undefined = () => undefined;
  /** Decides for each settlement: a failure is one that the relay never heard of. */
  onSettle: (signal: AbortSignal | undefined) => RelayFailure | undefined | Promise<RelayFailure> = () =>
    undefined;
  /** Whether each poll ends at once, as a cache in between would have it. */
  endsPolls = false;
  polls = 0;
  readonly #clock: FakeClock;
  #seq = 0;
  #waiting: (() => void)[] = [];

  constructor(clock: FakeClock, origin = 'http://relay.test') {
    this.#clock = clock;
    this.origin = origin;
  }

  fail(status: number, code = 'error'): RelayFailure {
    return new RelayFailure('refused', this.origin, `the relay ${this.origin} answers ${code}`, {
      status,
      code,
    });
  }

  breakDown(): void {
    this.down = new RelayFailure('unreachable', this.origin, `the relay ${this.origin} cannot be reached`);
    for (const wake of this.#waiting.splice(0)) wake();
  }

  depth(queue?: string): number {
    const all = queue === undefined ? [...this.queues.values()] : [this.queues.get(queue)];
    return all.reduce(
      (sum, one) => sum + (one?.items.filter(({ untilMs }) => untilMs > this.#clock.nowMs()).length ?? 0),
      0,
    );
  }

  /** Puts an item in a queue, as anybody may who knows its name. */
  inject(queue: string, body: Uint8Array): void {
    this.#put(queue, { id: String(this.#seq).padStart(32, '0'), body, ttl_s: 86_400 });
  }

  client(signer: Signer): Relay {
    const own = (queue: string): Queue => {
      if (!queue.startsWith(`${signer.key}.`)) throw this.fail(403, 'forbidden');
      return this.#queue(queue);
    };
    return {
      origin: this.origin,
      describe: async () => ({ id: 'model', protocols: ['v1'], now_ms: this.#clock.nowMs() }),
      register: async (queue, { door }) => {
        this.#up();
        const no = this.onRegister(queue);
        if (no !== undefined) throw no;
        const known = this.queues.get(queue);
        if (known === undefined)
          this.queues.set(queue, {
            door,
            gone: false,
            drainedMs: this.#clock.nowMs(),
            card: undefined,
            items: [],
          });
        else known.gone = false;
        return { created: known === undefined };
      },
      close: async (queue, { purge }) => {
        this.#up();
        const known = own(queue);
        if (purge) this.queues.delete(queue);
        else known.gone = true;
      },
      post: async (queue, item) => {
        this.#up();
        const posted = { queue, id: item.id, body: item.body };
        this.posts.push(posted);
        const verdict = await this.onPost(posted);
        if (verdict instanceof RelayFailure) throw verdict;
        if (verdict === 'lost') return { duplicate: false };
        return { duplicate: this.#put(queue, item) };
      },
      poll: async (queue, { wait_ms, max }, signal) => this.#poll(own, queue, wait_ms, max, signal),
      settle: async (queue, { ack, defer }, signal) => {
        this.#up();
        const lost = await this.onSettle(signal);
        if (lost !== undefined) throw lost;
        const known = own(queue);
        const before = known.items.length;
        known.items = known.items.filter(({ seq }) => !ack.includes(String(seq)));
        for (const { token, delay_s } of defer)
          for (const one of known.items)
            if (String(one.seq) === token) one.freeMs = this.#clock.nowMs() + delay_s * 1_000;
        return { settled: before - known.items.length, unknown: 0 };
      },
      putCard: async (queue, card) => {
        this.#up();
        own(queue).card = card.length === 0 ? undefined : card;
      },
      card: async (queue) => {
        this.#up();
        const known = this.queues.get(queue);
        return known && { age_ms: this.#clock.nowMs() - known.drainedMs, gone: known.gone, card: known.card };
      },
    };
  }

  #up(): void {
    if (this.down !== undefined) throw this.down;
  }

  #queue(name: string): Queue {
    const known = this.queues.get(name);
    if (known === undefined) throw this.fail(404, 'queue_unknown');
    return known;
  }

  #put(name: string, { id, body, ttl_s }: { id: string; body: Uint8Array; ttl_s: number }): boolean {
    const queue = this.#queue(name);
    const nowMs = this.#clock.nowMs();
    if (queue.items.some((one) => one.id === id && one.untilMs > nowMs)) return true;
    this.#seq += 1;
    queue.items.push({
      seq: this.#seq,
      id,
      body,
      atMs: nowMs,
      untilMs: nowMs + ttl_s * 1_000,
      freeMs: 0,
      attempt: 0,
    });
    for (const wake of this.#waiting.splice(0)) wake();
    return false;
  }

  async #poll(
    own: (queue: string) => Queue,
    name: string,
    waitMs: number,
    max: number,
    signal: AbortSignal | undefined,
  ): Promise<{ items: LeasedItem[]; more: boolean }> {
    this.polls += 1;
    const untilMs = this.#clock.nowMs() + (this.endsPolls ? 0 : waitMs);
    for (;;) {
      this.#up();
      const queue = own(name);
      queue.drainedMs = this.#clock.nowMs();
      queue.gone = false;
      const nowMs = this.#clock.nowMs();
      const free = queue.items.filter((one) => one.freeMs <= nowMs && one.untilMs > nowMs).slice(0, max);
      if (free.length > 0 || nowMs >= untilMs)
        return { items: free.map((one) => this.#lease(one)), more: false };
      await this.#wait(untilMs - nowMs, signal);
      if (signal?.aborted) throw new RelayFailure('unreachable', this.origin, 'ended');
    }
  }

  #lease(held: Held): LeasedItem {
    held.freeMs = this.#clock.nowMs() + leaseMs;
    held.attempt += 1;
    return {
      token: String(held.seq),
      id: held.id,
      age_ms: this.#clock.nowMs() - held.atMs,
      attempt: held.attempt,
      body: held.body,
    };
  }

  #wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        cancel();
        this.#waiting = this.#waiting.filter((one) => one !== end);
        signal?.removeEventListener('abort', end);
        resolve();
      };
      const soonest = Math.min(ms, 1_000);
      const cancel = this.#clock.after(soonest, end);
      this.#waiting.push(end);
      signal?.addEventListener('abort', end);
    });
  }
}
