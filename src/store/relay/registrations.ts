// Rows of queues and cards: who may be posted to, and when each owner was seen. A drain writes no row of its own; times are
// gathered for 15 s, and a restart makes up for those that were lost (REL-038).

import type { Presence, QueueRefusal } from '../../ports/relay-queue.ts';
import { keyOfQueue, relayLimits, relayQuotas } from '../../protocol/relay-http.ts';
import type { Database, Row } from '../database.ts';

export interface QueueRow {
  number: number;
  door: boolean;
  items: number;
  bytes: number;
  live: boolean;
}

/** Statements on queues; those that write are for inside a transaction. */
export class Registrations {
  readonly #database: Database;
  readonly #nowMs: () => number;
  /** Drains that no row tells of yet. */
  #seen = new Map<string, number>();
  #awayUntilMs: number;

  /** @param nowMs rises only while the process runs */
  constructor(database: Database, nowMs: () => number) {
    this.#database = database;
    this.#nowMs = nowMs;
    this.#awayUntilMs = nowMs();
  }

  /** Up to now no owner could drain. */
  away(): void {
    this.#awayUntilMs = this.#nowMs();
  }

  find(queue: string): QueueRow | undefined {
    const row = this.#database.get(
      'SELECT number, door, items, bytes, gone = 0 AND present = 1 AS live FROM queue WHERE name = ?',
      queue,
    );
    return row && queueRow(row);
  }

  register(queue: string, door: boolean): { created: boolean } | QueueRefusal {
    const known = this.find(queue);
    if (known !== undefined) {
      this.#database.run('UPDATE queue SET door = ? WHERE number = ?', Number(door), known.number);
      this.revive(queue);
      return { created: false };
    }
    const key = keyOfQueue(queue);
    const ofKey = this.#database.get(
      'SELECT count(*) AS count FROM queue WHERE name > ? AND name < ?',
      `${key}.`,
      `${key}/`,
    );
    if ((ofKey?.count as number) >= relayQuotas.queuesOfKeyMax) return 'queue_limit';
    const { queues } = this.#database.get('SELECT queues FROM relay') as { queues: number };
    if (queues >= relayQuotas.queuesMax) return 'relay_full';
    this.#database.run(
      'INSERT INTO queue (name, door, gone, present, seen_ms) VALUES (?, ?, 0, 1, ?)',
      queue,
      Number(door),
      this.#nowMs(),
    );
    this.#database.run('UPDATE relay SET queues = queues + 1');
    return { created: true };
  }

  /** Live from now on. */
  revive(queue: string): void {
    this.#database.run(
      'UPDATE queue SET gone = 0, present = 1, seen_ms = ? WHERE name = ?',
      this.#nowMs(),
      queue,
    );
  }

  /** Its owner drains a live queue. */
  saw(queue: string): void {
    this.#seen.set(queue, this.#nowMs());
  }

  /** @returns whether a drain waits to be written */
  get unwritten(): boolean {
    return this.#seen.size > 0;
  }

  /** Takes the drains that no row tells of; they count until `written` is called. */
  takeSeen(): ReadonlyMap<string, number> {
    const taken = this.#seen;
    for (const [queue, atMs] of taken)
      this.#database.run('UPDATE queue SET seen_ms = max(seen_ms, ?) WHERE name = ?', atMs, queue);
    return new Map(taken);
  }

  written(taken: ReadonlyMap<string, number>): void {
    for (const [queue, atMs] of taken) if (this.#seen.get(queue) === atMs) this.#seen.delete(queue);
  }

  close(queue: string): void {
    this.#database.run('UPDATE queue SET gone = 1 WHERE name = ?', queue);
  }

  /** With everything that it holds. */
  purge({ number, items, bytes }: QueueRow): void {
    this.#database.run('DELETE FROM queue WHERE number = ?', number);
    this.#database.run(
      'UPDATE relay SET queues = queues - 1, items = items - ?, bytes = bytes - ?',
      items,
      bytes,
    );
  }

  putCard(number: number, card: Uint8Array): void {
    if (card.length === 0) this.#database.run('DELETE FROM card WHERE queue = ?', number);
    else this.#database.run('INSERT OR REPLACE INTO card (queue, card) VALUES (?, ?)', number, card);
  }

  presence(queue: string): Presence | undefined {
    const row = this.#database.get(
      `SELECT gone, present, seen_ms, card FROM queue LEFT JOIN card ON card.queue = queue.number WHERE name = ?`,
      queue,
    ) as { gone: number; present: number; seen_ms: number; card: Uint8Array | null } | undefined;
    if (row === undefined || row.present === 0) return undefined;
    const seenMs = Math.max(row.seen_ms, this.#seen.get(queue) ?? 0);
    const countedMs = Math.max(seenMs, this.#awayUntilMs - relayLimits.ageAfterRestartMs);
    const ageMs = Math.max(0, this.#nowMs() - countedMs);
    if (ageMs > relayLimits.presenceMs) return undefined;
    return { ageMs, gone: row.gone === 1, card: row.card ?? undefined };
  }

  /** Removes presence that is too old, and a number of registrations. @returns their names */
  endOld(countMax: number): string[] {
    const nowMs = this.#nowMs();
    // After the relay was away, its clients are given time to come back.
    if (nowMs - this.#awayUntilMs < graceMs) return [];
    const old = nowMs - relayLimits.presenceMs;
    this.#database.run(
      `DELETE FROM card WHERE queue IN (SELECT number FROM queue WHERE seen_ms < ? AND present = 1)`,
      old,
    );
    this.#database.run('UPDATE queue SET present = 0 WHERE seen_ms < ? AND present = 1', old);
    const ended = this.#database.all(
      `SELECT name, number, door, items, bytes, 0 AS live FROM queue WHERE seen_ms < ? LIMIT ?`,
      nowMs - relayLimits.registrationMs,
      countMax,
    );
    for (const row of ended) this.purge(queueRow(row));
    return ended.map(({ name }) => name as string);
  }
}

const graceMs = 3_600_000;

const queueRow = (row: Row): QueueRow => ({
  number: row.number as number,
  door: row.door === 1,
  items: row.items as number,
  bytes: row.bytes as number,
  live: row.live === 1,
});
