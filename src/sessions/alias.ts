// One session under several ids: /clear gives a session a new id in the same process. The process (pid and start
// time) is what links them; an id is never taken from text.

import type { Clock } from '../ports/clock.ts';
import type { Store } from '../ports/store.ts';
import type { Wake } from '../ports/wake.ts';

/** A host process; another start time under the same pid is another process. */
export interface HostProcess {
  pid: number;
  start_time: string;
}

/** Records which session the host process runs now; on a clear, links it to the one before in that process. */
export async function recordSessionStart(
  ports: { store: Store; clock: Clock; wake: Wake },
  host: HostProcess,
  start: { session_id: string; source: string },
): Promise<void> {
  const at = new Date(ports.clock.nowMs()).toISOString();
  const linked = await ports.store.write((tx) => {
    const before = tx.identity.launcher(host.pid);
    tx.identity.recordLauncher({ ...host, session_id: start.session_id }, at);
    if (start.source !== 'clear' || before?.start_time !== host.start_time) return false;
    tx.identity.link(start.session_id, before.session_id);
    return true;
  });
  // What waited for the one id now waits for the other, too.
  if (linked) ports.wake.touch();
}

/** The session that the host process is known to run now. */
export function sessionOfHost(store: Store, host: HostProcess): string | undefined {
  const row = store.read((tx) => tx.identity.launcher(host.pid));
  return row?.start_time === host.start_time ? row.session_id : undefined;
}
