// Waiting, for a while or for work that may take longer than somebody can wait; and writes of what has happened, which are
// tried again where the store is locked, full or cannot be written for now.

import type { Clock } from '../ports/clock.ts';
import { type ErrorCode, Fault } from '../protocol/errors.ts';

export function pause(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => clock.after(ms, resolve));
}

/** Undefined where it takes longer; it goes on all the same. */
export function atMost<T>(clock: Clock, work: Promise<T>, ms: number): Promise<T | undefined> {
  let cancel = (): void => {};
  const timeOut = new Promise<undefined>((resolve) => {
    cancel = clock.after(ms, () => resolve(undefined));
  });
  return Promise.race([work, timeOut]).finally(cancel);
}

const passing: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['store_busy', 'store_full', 'store_unwritable']);
const againMs = 1_000;
/** A locked store was waited for already. */
const soonMs = 100;

/**
 * What has happened is known once, so its write is tried again. The last fault is thrown after `patienceMs`.
 * @param onFault told of each write that must be tried again
 */
export async function writePatiently<T>(
  clock: Clock,
  patienceMs: number,
  write: () => Promise<T>,
  onFault: (error: unknown) => void = () => {},
): Promise<T> {
  const untilMs = clock.elapsedMs() + patienceMs;
  for (;;) {
    let waitMs: number;
    try {
      return await write();
    } catch (error) {
      const mayPass = error instanceof Fault && passing.has(error.code);
      if (!mayPass || clock.elapsedMs() >= untilMs) throw error;
      onFault(error);
      waitMs = error.code === 'store_busy' ? soonMs : againMs;
    }
    await pause(clock, waitMs);
  }
}
