// What has already happened is known once: a host's answer, the end of a connection. The host is not asked again.

import { writePatiently } from '../mailbox/patience.ts';
import type { Clock } from '../ports/clock.ts';

const patienceMs = 120_000;

/** The last fault is thrown after two minutes. */
export function recordPatiently<T>({ clock }: { clock: Clock }, write: () => Promise<T>): Promise<T> {
  return writePatiently(clock, patienceMs, write);
}
