// The port of a relay's queues over one SQLite connection.

import type { Clock } from '../../ports/clock.ts';
import type { Random } from '../../ports/random.ts';
import type {
  Lease,
  PostedItem,
  Presence,
  QueueRefusal,
  QueueStore,
  Settlement,
} from '../../ports/relay-queue.ts';
import { patiently, transaction } from '../connection.ts';
import { type Database, storeFault } from '../database.ts';
import { groupCommits } from '../group.ts';
import { Arrivals } from './arrivals.ts';
import { Items } from './items.ts';
import { Leases } from './leases.ts';
import { type QueueRow, Registrations } from './registrations.ts';
import { type Tokens, tokensOf } from './tokens.ts';

/** How long the times of drains are gathered: they move presence, which is counted in 90 s. */
const seenWrittenMs = 15_000;
/** In one commit: a sweep holds up nobody for long. */
const sweepBatch = 200;

export interface QueuesOptions {
  path: string;
  clock: Clock;
  random: Random;
  /** When the connection is closed. */
  atEnd: () => void;
}

export class SqliteQueues implements QueueStore {
  readonly id: string;
  readonly #database: Database;
  readonly #options: QueuesOptions;
  readonly #tokens: Tokens;
  readonly #leases = new Leases();
  readonly #items: Items;
  readonly #registrations: Registrations;
  readonly #arrivals: Arrivals;
  readonly #write: <T>(work: () => T) => Promise<T>;
  readonly #seen: SeenTimes;

  /** @param database with the schema of this release */
  constructor(database: Database, options: QueuesOptions) {
    const { path, clock } = options;
    const { id, token_key } = database.get('SELECT id, token_key FROM relay') as unknown as {
      id: string;
      token_key: Uint8Array;
    };
    const nowMs = steadyTime(clock);
    this.id = id;
    this.#database = database;
    this.#options = options;
    this.#tokens = tokensOf(token_key);
    this.#items = new Items(database, this.#tokens, this.#leases, nowMs);
    this.#registrations = new Registrations(database, nowMs);
    this.#arrivals = new Arrivals(clock, (queue, atMs) => this.#leases.nextEndMs(queue, atMs));
    const grouped = groupCommits<undefined>(database, { path, clock }, (work) =>
      patiently(options, () => transaction(database, 'BEGIN IMMEDIATE', () => work(undefined))),
    );
    this.#write = (work) => grouped(work);
    this.#seen = seenTimes(this.#registrations, { write: this.#write, clock });
  }

  register(queue: string, { door }: { door: boolean }): Promise<{ created: boolean } | QueueRefusal> {
    return this.#write(() => this.#registrations.register(queue, door));
  }

  async remove(queue: string, { purge }: { purge: boolean }): Promise<boolean> {
    const found = await this.#write(() => {
      const row = this.#registrations.find(queue);
      if (row !== undefined && purge) this.#registrations.purge(row);
      else if (row !== undefined) this.#registrations.close(queue);
      return row !== undefined;
    });
    if (purge) this.#leases.endAll(queue);
    return found;
  }

  async drain(queue: string): Promise<boolean> {
    const row = this.#find(queue);
    if (row === undefined) return false;
    if (row.live) this.#seen.saw(queue);
    else await this.#write(() => this.#registrations.revive(queue));
    return true;
  }

  async post(
    queue: string,
    item: PostedItem,
  ): Promise<'accepted' | 'duplicate' | 'queue_unknown' | QueueRefusal> {
    const outcome = await this.#write(() => {
      const row = this.#registrations.find(queue);
      return row === undefined ? 'queue_unknown' : this.#items.post(row, item);
    });
    if (outcome === 'accepted') this.#arrivals.tell(queue);
    return outcome;
  }

  async lease(queue: string, bounds: { countMax: number; bytesMax: number }): Promise<Lease> {
    const number = this.#find(queue)?.number;
    if (number === undefined) return { items: [], more: false };
    const elapsedMs = this.#options.clock.elapsedMs();
    const lease = this.#read(() => this.#items.lease(queue, number, { ...bounds, elapsedMs }));
    this.#arrivals.leased(queue);
    return lease;
  }

  watch(queue: string, then: () => void): () => void {
    return this.#arrivals.watch(queue, then);
  }

  async settle(queue: string, { ack, defer }: Settlement): Promise<{ settled: number; unknown: number }> {
    const number = this.#find(queue)?.number;
    if (number === undefined) return { settled: 0, unknown: ack.length + defer.length };
    const acked = ack.flatMap((token) => this.#tokens.read(number, token) ?? []);
    const later = defer.flatMap(({ token, delayMs }) => {
      const item = this.#tokens.read(number, token);
      return item === undefined ? [] : [{ item, delayMs }];
    });
    // Each once, whoever says it twice.
    if (acked.length > 0) await this.#write(() => this.#items.remove(number, [...new Set(acked)]));
    for (const item of acked) this.#leases.end(queue, item);
    const deferred = later.filter(({ item }) => this.#read(() => this.#items.has(item)));
    const { clock } = this.#options;
    for (const { item, delayMs } of deferred) this.#leases.defer(queue, item, clock.elapsedMs() + delayMs);
    // There may be room for more leases now.
    this.#arrivals.tell(queue);
    const settled = acked.length + deferred.length;
    return { settled, unknown: ack.length + defer.length - settled };
  }

  putCard(queue: string, card: Uint8Array): Promise<boolean> {
    return this.#write(() => {
      const row = this.#registrations.find(queue);
      if (row !== undefined) this.#registrations.putCard(row.number, card);
      return row !== undefined;
    });
  }

  async presence(queue: string): Promise<Presence | undefined> {
    return this.#read(() => this.#registrations.presence(queue));
  }

  async sweep(): Promise<void> {
    while ((await this.#write(() => this.#items.removeExpired(sweepBatch))) === sweepBatch);
    await this.#seen.write();
    for (;;) {
      const ended = await this.#write(() => this.#registrations.endOld(sweepBatch));
      for (const queue of ended) this.#leases.endAll(queue);
      if (ended.length < sweepBatch) return;
    }
  }

  resumed(): void {
    this.#registrations.away();
  }

  async close(): Promise<void> {
    await this.#seen.write().finally(() => {
      this.#database.close();
      this.#options.atEnd();
    });
  }

  #find(queue: string): QueueRow | undefined {
    return this.#read(() => this.#registrations.find(queue));
  }

  /** Sees what is committed: a group of writes runs within one turn. */
  #read<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw storeFault(error, this.#options.path);
    }
  }
}

/** Unix ms as at the start, and then by the monotonic clock. */
function steadyTime(clock: Clock): () => number {
  const startMs = clock.nowMs() - clock.elapsedMs();
  return () => Math.round(startMs + clock.elapsedMs());
}

/** Drains of many queues are written at once. */
interface SeenTimes {
  saw(queue: string): void;
  write(): Promise<void>;
}

function seenTimes(
  registrations: Registrations,
  { write, clock }: { write: <T>(work: () => T) => Promise<T>; clock: Clock },
): SeenTimes {
  let cancel: (() => void) | undefined;
  const writeSeen = async (): Promise<void> => {
    cancel?.();
    cancel = undefined;
    if (registrations.unwritten) registrations.written(await write(() => registrations.takeSeen()));
  };
  const again = (): void => {
    // What cannot be written counts all the same while this process runs, and is tried with the next drain.
    writeSeen().catch(() => {});
  };
  return {
    saw: (queue: string): void => {
      registrations.saw(queue);
      cancel ??= clock.after(seenWrittenMs, again);
    },
    write: writeSeen,
  };
}
