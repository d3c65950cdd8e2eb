// Which router runs here: whoever holds the lock writes who it is. A version that refused a newer host is superseded, and
// does not start again as that version for a while, so that the installed one can take its place.

import { timestamp } from '../mailbox/desk.ts';
import type { RouterRun } from '../ports/presence.ts';
import { Fault } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import { compareVersions } from '../protocol/semver.ts';
import type { Switchboard } from './switchboard.ts';

type Ports = Pick<Switchboard, 'store' | 'clock'>;

/** Fault `router_superseded` while this version is held back. */
export async function beginRun(board: Ports, run: Omit<RouterRun, 'started_at'>): Promise<void> {
  await board.store.write((tx) => {
    const supersededMs = tx.routers.supersededAtMs(run.version);
    const passedMs = board.clock.nowMs() - (supersededMs ?? Number.NEGATIVE_INFINITY);
    if (passedMs >= 0 && passedMs < limits.versionHoldMs)
      throw new Fault(
        'router_superseded',
        `version ${run.version} made room for a newer one; it may start again in ${Math.ceil((limits.versionHoldMs - passedMs) / 1_000)} s`,
      );
    tx.routers.began({ ...run, started_at: timestamp(board) });
  });
}

/** Whether a router of version `own` must make room for the host's; an unreadable version says nothing. */
export function isOutdated(own: string, host: string): boolean {
  const order = compareVersions(own, host);
  return order !== undefined && order < 0;
}

export async function supersede(board: Ports, version: string): Promise<void> {
  await board.store.write((tx) => tx.routers.supersede(version, board.clock.nowMs()));
}
