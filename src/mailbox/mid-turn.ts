// What a session's host is told between two tools of a turn: mail that came and that nothing has rung for, once; and, where
// a task is under way without a word for long, that a progress message is due.

import type { Tx } from '../ports/store.ts';
import { isRefusal } from '../protocol/errors.ts';
import { quoted } from '../protocol/json.ts';
import { isCurrent } from '../protocol/notices.ts';
import { reminderLines } from '../protocol/reminder.ts';
import { inertLine } from '../protocol/untrusted.ts';
import { inboxOf } from './inbox.ts';
import { coverTold } from './reserve.ts';
import type { RingDesk, Ringing } from './ring.ts';

/** One line about mail that no current reservation covers; telling it is a ring. */
export async function midTurn(desk: RingDesk, ringing: Ringing): Promise<string[]> {
  if (desk.store.read((tx) => uncovered(tx, desk, ringing)).ids.length === 0) return [];
  return desk.store.write((tx) => {
    const { ids, root, lines } = uncovered(tx, desk, ringing);
    coverTold(tx, desk, root, ids);
    return lines;
  });
}

function uncovered(tx: Tx, desk: RingDesk, { caller, project }: Ringing) {
  const nowMs = desk.clock.nowMs();
  const root = tx.identity.chain(caller.session)[0] as string;
  const inbox = inboxOf(tx, caller, { project }, nowMs);
  if (isRefusal(inbox)) return { ids: [], root, lines: [] };
  const newest = tx.notices.newest(root);
  const covered = new Set(isCurrent(newest, nowMs) ? newest?.covered : []);
  const ids = tx.waiting.worthy(inbox).flatMap(({ delivery_id: id }) => (covered.has(id) ? [] : [id]));
  if (ids.length === 0) return { ids, root, lines: [] };
  const lines = reminderLines(caller.principal ?? caller.session, [{ project, ...tx.waiting.counts(inbox) }]);
  return { ids, root, lines };
}

/** @param lastMs when the session was last asked */
export function progressNudge(
  desk: Pick<RingDesk, 'store' | 'clock'>,
  session: string,
  { intervalMs, lastMs }: { intervalMs: number; lastMs: number | undefined },
): string | undefined {
  const { marker } = desk.store.read((tx) => ({
    marker: tx.tasks.marker(tx.identity.chain(session)[0] as string),
  }));
  if (marker === undefined) return undefined;
  const quietMs = desk.clock.nowMs() - Math.max(marker.since_ms, lastMs ?? 0);
  if (quietMs < intervalMs) return undefined;
  const task = quoted(marker.task_id);
  return inertLine(
    `Postbell: nobody has heard of task ${task} for ${Math.floor(quietMs / 1_000)} s: if it goes on, say so with the tool message (action "send", status "update", task_id ${task}).`,
  );
}
