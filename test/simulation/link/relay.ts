// A relay as relay.md says that it behaves: durable items, leases of 30 s that a restart forgets, duplicates by item id, times to live,
// cards and ages. What is asked of it is answered at once; the network between takes the time.

import { type LeasedItem, RelayFailure, type RelayItem } from '../../../src/ports/relay.ts';
import type { LinkWorld } from './world.ts';

const leaseMs = 30_000;
const itemsMax = 1_024;
const doorItemsMax = 64;
const leasedMax = 256;
const pollsMax = 4;
const cardKeptMs = 3 * 86_400_000;
const restartAgeMs = 90_000;

interface Held {
  token: string;
  id: string;
  body: Uint8Array;
  atMs: number;
  untilMs: number;
  /** Until then nobody gets it. */
  freeMs: number;
  attempt: number;
}

interface Queue {
  door: boolean;
  gone: boolean;
  seenMs: number;
  card: Uint8Array | undefined;
  items: Held[];
}

export interface Poll {
  queue: string;
  max: number;
  /** Called once; undefined where the connection broke. */
  answer(items: LeasedItem[] | undefined): void;
}

export class SimulatedRelay {
  readonly origin: string;
  readonly queues = new Map<string, Queue>();
  up = true;
  /** What became of an item that no owner settled. */
  onLost: (body: Uint8Array, queue: string) => void = () => {};
  readonly #world: LinkWorld;
  readonly #polls = new Set<Poll>();
  #tokens = 0;

  constructor(world: LinkWorld, origin: string) {
    this.#world = world;
    this.origin = origin;
  }

  refuse(status: number, code: string, retryAfterMs?: number): RelayFailure {
    const more = { status, code, ...(retryAfterMs !== undefined && { retryAfterMs }) };
    return new RelayFailure('refused', this.origin, `the relay ${this.origin} answers ${code}`, more);
  }

  /** Registrations, items and cards stay; leases and open polls do not. */
  restart(): void {
    const nowMs = this.#world.elapsedMs;
    for (const queue of this.queues.values()) {
      queue.seenMs = Math.max(queue.seenMs, nowMs - restartAgeMs);
      for (const item of queue.items) item.freeMs = 0;
    }
    for (const poll of this.#polls) this.#end(poll, undefined);
  }

  /** Its disk is lost. */
  wipe(): void {
    for (const [name, queue] of this.queues) for (const { body } of queue.items) this.onLost(body, name);
    this.queues.clear();
    this.restart();
  }

  register(name: string, door: boolean): { created: boolean } {
    const known = this.queues.get(name);
    const nowMs = this.#world.elapsedMs;
    if (known === undefined)
      this.queues.set(name, { door, gone: false, seenMs: nowMs, card: undefined, items: [] });
    else Object.assign(known, { gone: false, seenMs: nowMs });
    return { created: known === undefined };
  }

  close(name: string, purge: boolean): void {
    const queue = this.#queue(name);
    queue.gone = true;
    if (!purge) return;
    for (const { body } of queue.items) this.onLost(body, name);
    this.queues.delete(name);
  }

  post(name: string, { id, body, ttl_s }: RelayItem): { duplicate: boolean } {
    const queue = this.#queue(name);
    this.#expire(name, queue);
    if (queue.items.some((one) => one.id === id)) return { duplicate: true };
    if (queue.items.length >= (queue.door ? doorItemsMax : itemsMax))
      throw this.refuse(429, 'queue_full', 5_000);
    const atMs = this.#world.elapsedMs;
    this.#tokens += 1;
    const token = `t${this.#tokens}`;
    queue.items.push({ token, id, body, atMs, untilMs: atMs + ttl_s * 1_000, freeMs: 0, attempt: 0 });
    this.#serve(name);
    return { duplicate: false };
  }

  /** Answers at once where something is there, else when something comes; `end` takes it back with an empty answer. */
  poll(poll: Poll): { end(): void; drop(): void } {
    const queue = this.#queue(poll.queue);
    Object.assign(queue, { seenMs: this.#world.elapsedMs, gone: false });
    this.#polls.add(poll);
    const same = [...this.#polls].filter((one) => one.queue === poll.queue);
    if (same.length > pollsMax) this.#end(same[0] as Poll, []);
    this.#serve(poll.queue);
    return { end: () => this.#end(poll, []), drop: () => void this.#polls.delete(poll) };
  }

  settle(name: string, ack: readonly string[], defer: readonly { token: string; delay_s: number }[]) {
    const queue = this.#queue(name);
    const before = queue.items.length;
    queue.items = queue.items.filter(({ token }) => !ack.includes(token));
    for (const { token, delay_s } of defer)
      for (const item of queue.items)
        if (item.token === token) this.#free(name, item, this.#world.elapsedMs + delay_s * 1_000);
    return { settled: before - queue.items.length, unknown: 0 };
  }

  putCard(name: string, card: Uint8Array): void {
    this.#queue(name).card = card.length === 0 ? undefined : card;
  }

  presence(name: string) {
    const queue = this.queues.get(name);
    if (queue === undefined) return undefined;
    const age_ms = this.#world.elapsedMs - queue.seenMs;
    return age_ms > cardKeptMs ? undefined : { age_ms, gone: queue.gone, card: queue.card };
  }

  depth(name: string): number {
    const queue = this.queues.get(name);
    if (queue !== undefined) this.#expire(name, queue);
    return queue?.items.length ?? 0;
  }

  #queue(name: string): Queue {
    const queue = this.queues.get(name);
    if (queue === undefined) throw this.refuse(404, 'queue_unknown');
    return queue;
  }

  #expire(name: string, queue: Queue): void {
    const nowMs = this.#world.elapsedMs;
    for (const item of queue.items) if (item.untilMs <= nowMs) this.onLost(item.body, name);
    queue.items = queue.items.filter(({ untilMs }) => untilMs > nowMs);
  }

  /** The first poll of the queue gets what may be had. */
  #serve(name: string): void {
    const poll = [...this.#polls].find((one) => one.queue === name);
    const queue = this.queues.get(name);
    if (poll === undefined || queue === undefined) return;
    this.#expire(name, queue);
    const nowMs = this.#world.elapsedMs;
    const leased = queue.items.filter(({ freeMs }) => freeMs > nowMs).length;
    const free = queue.items.filter(({ freeMs }) => freeMs <= nowMs);
    const items = free.slice(0, Math.min(poll.max, Math.max(0, leasedMax - leased)));
    if (items.length === 0) return;
    this.#end(
      poll,
      items.map((item) => this.#lease(name, item)),
    );
  }

  #lease(name: string, item: Held): LeasedItem {
    item.attempt += 1;
    const { token, id, attempt, body } = item;
    this.#free(name, item, this.#world.elapsedMs + leaseMs);
    return { token, id, age_ms: this.#world.elapsedMs - item.atMs, attempt, body };
  }

  #free(name: string, item: Held, atMs: number): void {
    item.freeMs = atMs;
    this.#world.later(undefined, `${this.origin} may give an item again`, atMs - this.#world.elapsedMs, () =>
      this.#serve(name),
    );
  }

  #end(poll: Poll, items: LeasedItem[] | undefined): void {
    if (this.#polls.delete(poll)) poll.answer(items);
  }
}
