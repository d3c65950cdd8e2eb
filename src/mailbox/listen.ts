// The listener's side of the bell: the next batch of a session's listener rows, and the cursor that covers
// exactly what was printed.

import type { Tx } from '../ports/store.ts';
import { utf8Bytes } from '../protocol/json.ts';
import { limits } from '../protocol/limits.ts';
import { renderEarlier } from '../protocol/whole.ts';
import type { Desk } from './desk.ts';
import { currentReservation } from './reserve.ts';

export interface Batch {
  /** What to print; absent where every row is passed over. */
  text?: string;
  root: string;
  /** The cursor after this batch. */
  position: number;
}

/** More prints than five within it are held back. */
const minuteMs = 60_000;

/**
 * The rows beyond the cursor of all the session's ids. Of several notices the newest that still has waiting mail, of which
 * the host was not told otherwise, is printed; the others are passed. Each row of pairing and of an earlier format is
 * printed. Undefined where there are no rows.
 */
export function nextBatch(desk: Pick<Desk, 'store' | 'clock'>, sessionId: string): Batch | undefined {
  return desk.store.read((tx) => {
    const ids = tx.identity.chain(sessionId);
    const root = ids[0] as string;
    const nowMs = desk.clock.nowMs();
    const current = currentReservation(tx, root, nowMs)?.notification_id;
    const rows = tx.listener.rows(ids, tx.listener.cursor(root), limits.listenerBatchRowsMax, current);
    let bytes = 0;
    const taken = rows.filter((row) => {
      const fits = bytes < limits.listenerBatchBytesMax;
      bytes += fits ? utf8Bytes(row.text) : 0;
      return fits;
    });
    const last = taken.at(-1);
    if (last === undefined) return undefined;
    const newest = taken.findLast((row) => row.waiting);
    const printed = taken.filter((row) => row.whole || row.pairing || row === newest);
    const text = printed.map((row) => (row.whole ? renderEarlier(row.text) : row.text)).join('\n\n');
    return { root, position: last.seq, ...(printed.length > 0 && { text }) };
  });
}

/** How long until the session of the batch may be printed for again. */
export function heldBackMs(desk: Pick<Desk, 'store' | 'clock'>, { root }: Batch): number {
  const oldest = desk.store.read((tx) => tx.listener.prints(root))[limits.printsPerMinuteMax - 1];
  const leftMs = oldest === undefined ? 0 : oldest + minuteMs - desk.clock.nowMs();
  // A clock that was set back holds up nobody.
  return leftMs > minuteMs ? 0 : Math.max(leftMs, 0);
}

/** Moves the cursor over a batch that was flushed, or passed over. */
export async function commitBatch(desk: Pick<Desk, 'store' | 'clock'>, batch: Batch): Promise<void> {
  await desk.store.write((tx: Tx) => {
    const printed = batch.text === undefined ? [] : [desk.clock.nowMs()];
    const prints = [...printed, ...tx.listener.prints(batch.root)].slice(0, limits.printsPerMinuteMax);
    tx.listener.setCursor(batch.root, batch.position, prints);
  });
}
