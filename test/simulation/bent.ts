// A store whose transactions do what the product never must: for planted faults.

import type { Store, Tx } from '../../src/ports/store.ts';

/** The aggregates of a transaction, some of them changed; all others as they are. */
export type Altered = { [K in keyof Tx]?: Partial<Tx[K]> };

export function bentStore(store: Store, change: (tx: Tx) => Altered): Store {
  const bent = (tx: Tx): Tx => {
    const made: Record<string, unknown> = { ...tx };
    for (const [name, over] of Object.entries(change(tx))) made[name] = { ...tx[name as keyof Tx], ...over };
    return made as unknown as Tx;
  };
  return {
    ...store,
    read: (work) => store.read((tx) => work(bent(tx))),
    write: (work) => store.write((tx) => work(bent(tx))),
  };
}

class NotKept extends Error {}

/** Answers what a transaction said, and keeps nothing of it. */
export async function unkept<T>(store: Store, work: (tx: Tx) => T): Promise<T> {
  let value: T | undefined;
  await store
    .write((tx) => {
      value = work(tx);
      throw new NotKept();
    })
    .catch((error: unknown) => {
      if (!(error instanceof NotKept)) throw error;
    });
  return value as T;
}
