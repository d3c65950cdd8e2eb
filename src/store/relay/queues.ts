// The port of a relay's queues over one SQLite connection.

import type { Clock } from '../../ports/clock.ts';
import type { Random } from '../../ports/random.ts';
import type { QueueStore, Settlement } from '../../ports/relay-queue.ts';
import { patiently, transaction } from '../connection.ts';
import { type Database, storeFault } from '../database.ts';
import { groupCommits } from '../group.ts';
import { Arrivals } from './arrivals.ts';
import { Items } from './items.ts';
import { Leases } from './leases.ts';
import { Registrations } from './registrations.ts';
import { tokensOf } from './tokens.ts';

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

export function queuesOver(database: Database, options: QueuesOptions): QueueStore {
  const { path, clock } = options;
  const { id, token_key } = database.get('SELECT id, token_key FROM relay') as unknown as {
    id: string;
    token_key: Uint8Array;
  };
  const nowMs = steadyTime(clock);
  const tokens = tokensOf(token_key);
  const leases = new Leases();
  const items = new Items(database, tokens, leases, nowMs);
  const registrations = new Registrations(database, nowMs);
  const arrivals = new Arrivals(clock, (queue, atMs) => leases.nextEndMs(queue, atMs));

  const grouped = groupCommits<undefined>(database, { path, clock }, (work) =>
    patiently(options, () => transaction(database, 'BEGIN IMMEDIATE', () => work(undefined))),
  );
  const write = <T>(work: () => T): Promise<T> => grouped(work);
  /** A read sees what is committed: a group runs within one turn. */
  const read = <T>(work: () => T): T => {
    try {
      return work();
    } catch (error) {
      throw storeFault(error, path);
    }
  };
  const seen = seenTimes(registrations, { write, clock });

  return {
    id,
    register: (queue, { door }) => write(() => registrations.register(queue, door)),
    remove: async (queue, { purge }) => {
      const found = await write(() => {
        const row = registrations.find(queue);
        if (row !== undefined && purge) registrations.purge(row);
        else if (row !== undefined) registrations.close(queue);
        return row !== undefined;
      });
      if (purge) leases.endAll(queue);
      return found;
    },
    drain: async (queue) => {
      const row = read(() => registrations.find(queue));
      if (row === undefined) return false;
      if (row.live) seen.saw(queue);
      else await write(() => registrations.revive(queue));
      return true;
    },
    post: async (queue, item) => {
      const outcome = await write(() => {
        const row = registrations.find(queue);
        return row === undefined ? 'queue_unknown' : items.post(row, item);
      });
      if (outcome === 'accepted') arrivals.tell(queue);
      return outcome;
    },
    lease: async (queue, bounds) => {
      const row = read(() => registrations.find(queue));
      if (row === undefined) return { items: [], more: false };
      const lease = read(() => items.lease(queue, row.number, { ...bounds, elapsedMs: clock.elapsedMs() }));
      arrivals.leased(queue);
      return lease;
    },
    watch: (queue, then) => arrivals.watch(queue, then),
    settle: async (queue, what) => settle(queue, read(() => registrations.find(queue))?.number, what),
    putCard: (queue, card) =>
      write(() => {
        const row = registrations.find(queue);
        if (row !== undefined) registrations.putCard(row.number, card);
        return row !== undefined;
      }),
    presence: async (queue) => read(() => registrations.presence(queue)),
    sweep: async () => {
      while ((await write(() => items.removeExpired(sweepBatch))) === sweepBatch);
      await seen.write();
      for (;;) {
        const ended = await write(() => registrations.endOld(sweepBatch));
        for (const queue of ended) leases.endAll(queue);
        if (ended.length < sweepBatch) return;
      }
    },
    resumed: () => registrations.away(),
    close: async () => {
      await seen.write();
      database.close();
      options.atEnd();
    },
  };

  async function settle(queue: string, number: number | undefined, { ack, defer }: Settlement) {
    if (number === undefined) return { settled: 0, unknown: ack.length + defer.length };
    const acked = ack.flatMap((token) => tokens.read(number, token) ?? []);
    const later = defer.flatMap(({ token, delayMs }) => {
      const item = tokens.read(number, token);
      return item === undefined ? [] : [{ item, delayMs }];
    });
    // Each once, whoever says it twice.
    if (acked.length > 0) await write(() => items.remove(number, [...new Set(acked)]));
    for (const item of acked) leases.end(queue, item);
    const deferred = later.filter(({ item }) => read(() => items.has(item)));
    for (const { item, delayMs } of deferred) leases.defer(queue, item, clock.elapsedMs() + delayMs);
    arrivals.tell(queue);
    const settled = acked.length + deferred.length;
    return { settled, unknown: ack.length + defer.length - settled };
  }
}

/** Unix ms as at the start, and then by the monotonic clock. */
function steadyTime(clock: Clock): () => number {
  const startMs = clock.nowMs() - clock.elapsedMs();
  return () => Math.round(startMs + clock.elapsedMs());
}

/** Drains of many queues are written at once. */
function seenTimes(
  registrations: Registrations,
  { write, clock }: { write: <T>(work: () => T) => Promise<T>; clock: Clock },
) {
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
