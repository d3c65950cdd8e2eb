// The listener bell: a notice row that the armed `postbell wait` of the session prints, by which Claude Code wakes.
// The committed row is the evidence; it proves that the next armed listener will print this notice or a newer one, and
// nothing else.

import type { Bell, RingItem, RingOutcome } from '../../ports/bell.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Store, Tx } from '../../ports/store.ts';
import type { Wake } from '../../ports/wake.ts';
import { isCurrent } from '../../protocol/notices.ts';
import { isLive } from '../../protocol/session.ts';

export function listenerBell(ports: { store: Store; clock: Clock; wake: Wake }): Bell {
  return {
    describe: () => ({ bell: 'listener', adapterKind: 'claude-listener', hostKind: 'claude' }),
    ring: async (item) => {
      const outcome = await ports.store.write((tx) => append(tx, item, ports.clock.nowMs()));
      if (outcome.outcome === 'accepted') ports.wake.touch();
      return outcome;
    },
  };
}

/** Row and state in one transaction, which looks again whether this ring still counts. */
function append(tx: Tx, item: RingItem, nowMs: number): RingOutcome {
  const { notification_id } = item;
  if (!stillCounts(tx, item, nowMs)) return { outcome: 'unknown' };
  const served = item.attempt !== undefined && tx.notices.isRung(notification_id, item.attempt.delivery_id);
  if (!served) {
    const created_at = new Date(nowMs).toISOString();
    tx.listener.append({ session_id: item.session_id, notification_id, text: item.text, created_at });
    tx.notices.setState(notification_id, 'inbox_queued');
    tx.notices.markRung(notification_id);
  }
  return { outcome: 'accepted', content: 'notice', receipt: { notification_id, state: 'inbox_queued' } };
}

/** A hand-off counts while its attempt is unfinished on a live connection; a notifier's ring while it is current. */
function stillCounts(tx: Tx, item: RingItem, nowMs: number): boolean {
  if (item.attempt === undefined) {
    const reservation = tx.notices.byId(item.notification_id);
    return reservation?.state === 'preparing' && isCurrent(reservation, nowMs);
  }
  const attempt = tx.attempts.byId(item.attempt.attempt_id);
  if (attempt?.state !== 'started') return false;
  return isLive(tx.sessions.connection(attempt.connection_id), nowMs);
}
