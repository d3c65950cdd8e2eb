// Group commit: what one process writes for many within one turn of its event loop becomes one commit, and one sync of the
// disk. Each piece of work has a savepoint of its own, so that one that throws takes back nothing of the others.

import type { Clock } from '../ports/clock.ts';
import { type Database, storeFault } from './database.ts';

/** Bounds how long the write lock is held at a time. */
const worksMax = 64;

interface Entry<Tx> {
  work: (tx: Tx) => unknown;
  resolve: (value: unknown) => void;
  reject: (error: unknown) => void;
}

type Outcome = { value: unknown } | { error: unknown };

/**
 * @param transact runs its argument in one durable transaction, perhaps more than once
 * @returns `Store.write`, or the same of another store
 */
export function groupCommits<Tx>(
  database: Database,
  { path, clock }: { path: string; clock: Clock },
  transact: <T>(work: (tx: Tx) => T) => Promise<T>,
): <T>(work: (tx: Tx) => T) => Promise<T> {
  let waiting: Entry<Tx>[] = [];
  let running = false;

  const run = async (): Promise<void> => {
    while (waiting.length > 0) {
      const batch = waiting.slice(0, worksMax);
      waiting = waiting.slice(worksMax);
      await commit(batch);
    }
    running = false;
  };

  const commit = async (batch: readonly Entry<Tx>[]): Promise<void> => {
    try {
      const outcomes = await transact((tx) => batch.map((entry) => attempt(tx, entry)));
      for (const [nth, outcome] of outcomes.entries())
        if ('error' in outcome) batch[nth]?.reject(outcome.error);
        else batch[nth]?.resolve(outcome.value);
    } catch (error) {
      for (const entry of batch) entry.reject(error);
    }
  };

  const attempt = (tx: Tx, { work }: Entry<Tx>): Outcome => {
    database.run('SAVEPOINT work');
    try {
      const value = work(tx);
      database.run('RELEASE work');
      return { value };
    } catch (error) {
      takeBack(database, error);
      return { error: storeFault(error, path) };
    }
  };

  return <T>(work: (tx: Tx) => T) =>
    new Promise<T>((resolve, reject) => {
      waiting.push({ work, resolve: resolve as (value: unknown) => void, reject });
      if (running) return;
      running = true;
      clock.after(0, () => void run());
    });
}

/** A disk that is full has ended the whole transaction: then nothing of the batch can stand. */
function takeBack(database: Database, error: unknown): void {
  try {
    database.run('ROLLBACK TO work');
    database.run('RELEASE work');
  } catch {
    throw error;
  }
}
