// Rows of items: posted, delivered in the order of their acceptance, and gone once they are settled or too old.

import type { HeldItem, Lease, PostedItem, QueueRefusal } from '../../ports/relay-queue.ts';
import { relayQuotas } from '../../protocol/relay-http.ts';
import { type Database, literal, type Row } from '../database.ts';
import type { Leases } from './leases.ts';
import type { QueueRow } from './registrations.ts';
import type { Tokens } from './tokens.ts';

/** A row without its body, which may be long. */
interface Waiting {
  number: number;
  id: string;
  acceptedMs: number;
  bytes: number;
}

const columns = 'number, id, accepted_ms, bytes';

/** Statements on items; those that write are for inside a transaction. */
export class Items {
  readonly #database: Database;
  readonly #tokens: Tokens;
  readonly #leases: Leases;
  readonly #nowMs: () => number;

  constructor(database: Database, tokens: Tokens, leases: Leases, nowMs: () => number) {
    this.#database = database;
    this.#tokens = tokens;
    this.#leases = leases;
    this.#nowMs = nowMs;
  }

  post(row: QueueRow, { id, ttlMs, body }: PostedItem): 'accepted' | 'duplicate' | QueueRefusal {
    let queue = row;
    const nowMs = this.#nowMs();
    const before = this.#database.get(
      'SELECT number, bytes, expires_ms FROM item WHERE queue = ? AND id = ?',
      queue.number,
      id,
    ) as { number: number; bytes: number; expires_ms: number } | undefined;
    if (before !== undefined) {
      if (before.expires_ms > nowMs) return 'duplicate';
      this.#remove(queue.number, [before]);
      queue = { ...queue, items: queue.items - 1, bytes: queue.bytes - before.bytes };
    }
    const refusal = this.#refusal(queue, body.length);
    if (refusal !== undefined) return refusal;
    this.#database.run(
      `INSERT INTO item (queue, id, accepted_ms, expires_ms, bytes, body) VALUES (?, ?, ?, ?, ?, ?)`,
      queue.number,
      id,
      nowMs,
      nowMs + ttlMs,
      body.length,
      body,
    );
    this.#count(queue.number, 1, body.length);
    return 'accepted';
  }

  #refusal({ door, items, bytes }: QueueRow, more: number): QueueRefusal | undefined {
    const quota = door ? relayQuotas.door : relayQuotas.queue;
    if (items >= quota.itemsMax || bytes + more > quota.bytesMax) return 'queue_full';
    const all = this.#database.get('SELECT items, bytes FROM relay') as { items: number; bytes: number };
    const { itemsMax, bytesMax } = relayQuotas.store;
    return all.items >= itemsMax || all.bytes + more > bytesMax ? 'relay_full' : undefined;
  }

  /** Reads alone: who holds what is known in memory. */
  lease(
    name: string,
    queue: number,
    { countMax, bytesMax, elapsedMs }: { countMax: number; bytesMax: number; elapsedMs: number },
  ): Lease {
    const room = this.#leases.room(name, elapsedMs);
    const most = Math.min(countMax, room);
    if (most <= 0) return { items: [], more: false };
    const again = this.#again(name, elapsedMs, most + 1);
    const first = this.#first(name, queue, most + 1);
    const taken: Waiting[] = [];
    let bytes = 0;
    while (taken.length < most && bytes <= bytesMax && again.length + first.length > 0) {
      const isAgain = first.length === 0 || (again.length > 0 && this.#leases.takesAgainFirst(name));
      const next = (isAgain ? again : first).shift() as Waiting;
      if (!isAgain) this.#leases.passed(name, next.number);
      bytes += next.bytes;
      taken.push(next);
    }
    const more = again.length + first.length > 0 && taken.length < room;
    return { items: this.#handOver(name, queue, taken, elapsedMs), more };
  }

  #handOver(name: string, queue: number, taken: readonly Waiting[], elapsedMs: number): HeldItem[] {
    const numbers = taken.map(({ number }) => number);
    const tokens = this.#tokens.make(queue, numbers);
    const nowMs = this.#nowMs();
    return taken.map(({ number, id, acceptedMs }, nth) => ({
      token: tokens[nth] as string,
      id,
      ageMs: Math.max(0, nowMs - acceptedMs),
      attempt: this.#leases.lease(name, number, elapsedMs),
      body: this.#database.get('SELECT body FROM item WHERE number = ?', number)
        ?.body as unknown as Uint8Array,
    }));
  }

  /** Those whose lease or deferral is over. One that is gone is forgotten. */
  #again(name: string, elapsedMs: number, countMax: number): Waiting[] {
    const found: Waiting[] = [];
    for (const number of this.#leases.due(name, elapsedMs)) {
      if (found.length >= countMax) break;
      const row = this.#database.get(
        `SELECT ${columns} FROM item WHERE number = ? AND expires_ms > ?`,
        number,
        this.#nowMs(),
      );
      if (row === undefined) this.#leases.end(name, number);
      else found.push(waiting(row));
    }
    return found;
  }

  /** Those that nobody was given before, in the order of their acceptance. */
  #first(name: string, queue: number, countMax: number): Waiting[] {
    const found: Waiting[] = [];
    let after = this.#leases.deliveredTo(name);
    for (;;) {
      const rows = this.#database.all(
        `SELECT ${columns} FROM item WHERE queue = ? AND number > ? AND expires_ms > ?
         ORDER BY number LIMIT ${literal(countMax)}`,
        queue,
        after,
        this.#nowMs(),
      );
      found.push(...rows.map(waiting).filter(({ number }) => !this.#leases.isHeld(name, number)));
      if (rows.length < countMax || found.length >= countMax) return found.slice(0, countMax);
      after = rows.at(-1)?.number as number;
    }
  }

  has(number: number): boolean {
    return this.#database.get('SELECT 1 FROM item WHERE number = ?', number) !== undefined;
  }

  remove(queue: number, numbers: readonly number[]): void {
    const rows = numbers.flatMap((number) => {
      const row = this.#database.get('SELECT number, bytes FROM item WHERE number = ?', number);
      return row === undefined ? [] : [row as { number: number; bytes: number }];
    });
    if (rows.length > 0) this.#remove(queue, rows);
  }

  /** A number of items that have had their time. @returns how many */
  removeExpired(countMax: number): number {
    const rows = this.#database.all(
      `SELECT number, queue, bytes FROM item WHERE expires_ms <= ? ORDER BY expires_ms LIMIT ${literal(countMax)}`,
      this.#nowMs(),
    ) as { number: number; queue: number; bytes: number }[];
    for (const row of rows) this.#remove(row.queue, [row]);
    return rows.length;
  }

  #remove(queue: number, rows: readonly { number: number; bytes: number }[]): void {
    let bytes = 0;
    for (const row of rows) {
      this.#database.run('DELETE FROM item WHERE number = ?', row.number);
      bytes += row.bytes;
    }
    this.#count(queue, -rows.length, -bytes);
  }

  #count(queue: number, items: number, bytes: number): void {
    this.#database.run(
      'UPDATE queue SET items = items + ?, bytes = bytes + ? WHERE number = ?',
      items,
      bytes,
      queue,
    );
    this.#database.run('UPDATE relay SET items = items + ?, bytes = bytes + ?', items, bytes);
  }
}

const waiting = (row: Row): Waiting => ({
  number: row.number as number,
  id: row.id as string,
  acceptedMs: row.accepted_ms as number,
  bytes: row.bytes as number,
});
