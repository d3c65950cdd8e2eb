// A simulated process: what it has in memory are its events and closures, and both are gone when it is killed. What the
// kernel does then (closes sockets, frees locks) is in `atDeath`.

import type { Event } from './timeline.ts';

export type ProcessKind = 'router' | 'server' | 'listener' | 'hook' | 'command';

export class Process {
  readonly kind: ProcessKind;
  readonly name: string;
  alive = true;
  paused = false;
  /** What became due while it was stopped. */
  readonly parked: Event[] = [];
  readonly #ends = new Set<() => void>();

  constructor(kind: ProcessKind, name: string) {
    this.kind = kind;
    this.name = name;
  }

  /** @returns what takes it back */
  atDeath(then: () => void): () => void {
    this.#ends.add(then);
    return () => void this.#ends.delete(then);
  }

  end(): void {
    if (!this.alive) return;
    this.alive = false;
    this.parked.length = 0;
    const ends = [...this.#ends];
    this.#ends.clear();
    for (const end of ends) end();
  }
}
