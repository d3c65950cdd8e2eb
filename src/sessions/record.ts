// What has already happened is known once: a host's answer, the end of a connection. Where the store is locked, the write
// is tried again; the host is not asked again.

import { Fault } from '../protocol/errors.ts';

/** Each try waits as long as a writer may: two minutes in all. */
const triesMax = 24;

export async function recordPatiently<T>(write: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await write();
    } catch (error) {
      const isBusy = error instanceof Fault && error.code === 'store_busy';
      if (!isBusy || tries >= triesMax) throw error;
    }
  }
}
