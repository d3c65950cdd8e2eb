// What has already happened is known once: a host's answer, the end of a connection. Where the store is locked, full or
// cannot be written for now, the write is tried again; the host is not asked again.

import type { Clock } from '../ports/clock.ts';
import { type ErrorCode, Fault } from '../protocol/errors.ts';

const patienceMs = 120_000;
/** A locked store was waited for already; a full one answers at once. */
const pauseMs = 1_000;
const passing: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['store_busy', 'store_full', 'store_unwritable']);

/** The last fault is thrown after two minutes. */
export async function recordPatiently<T>({ clock }: { clock: Clock }, write: () => Promise<T>): Promise<T> {
  const untilMs = clock.elapsedMs() + patienceMs;
  for (;;) {
    try {
      return await write();
    } catch (error) {
      const mayPass = error instanceof Fault && passing.has(error.code);
      if (!mayPass || clock.elapsedMs() >= untilMs) throw error;
      if (error.code === 'store_busy') continue;
    }
    await new Promise<void>((resolve) => clock.after(pauseMs, resolve));
  }
}
