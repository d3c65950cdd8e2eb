// Who waits for a touch: each is told a little later, and once for the touches that come meanwhile.

import type { Process } from './process.ts';

interface Watcher {
  owner: Process;
  pending: boolean;
  onTouch: () => void;
}

export interface Delaying {
  later(owner: Process, label: string, ms: number, run: () => void): unknown;
  delayMs(): number;
}

export class Watchers {
  readonly #world: Delaying;
  readonly #watchers = new Set<Watcher>();

  constructor(world: Delaying) {
    this.#world = world;
  }

  touch(): void {
    for (const watcher of this.#watchers) {
      if (watcher.pending) continue;
      watcher.pending = true;
      this.#world.later(watcher.owner, 'touched', this.#world.delayMs(), () => {
        watcher.pending = false;
        watcher.onTouch();
      });
    }
  }

  watch(owner: Process, onTouch: () => void): () => void {
    const watcher = { owner, pending: false, onTouch };
    const unwatch = (): void => void this.#watchers.delete(watcher);
    this.#watchers.add(watcher);
    owner.atDeath(unwatch);
    return unwatch;
  }
}
