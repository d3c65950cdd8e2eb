// The listener bell: a notice row that the armed `postbell wait` of the session prints, by which Claude Code wakes.
// The committed row is the evidence; it proves that the next armed listener will print this notice or a newer one, and
// nothing else.

import type { Bell, BellState, RingItem, RingOutcome } from '../../ports/bell.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Store, Tx } from '../../ports/store.ts';
import type { Wake } from '../../ports/wake.ts';
import { limits } from '../../protocol/limits.ts';
import { isPreparing } from '../../protocol/notices.ts';
import { handOffStands } from '../../protocol/session.ts';

/** Printed rows are kept as long, and until what they announced is consumed. */
const rowsKeptMs = 86_400_000;

/** @param armed whether a listener would notice a row now; without it the bell does not know */
export function listenerBell(
  ports: { store: Store; clock: Clock; wake: Wake },
  armed: () => boolean = () => true,
): Bell {
  let closed = false;
  return {
    describe: () => ({
      bell: 'listener',
      adapterKind: 'claude-listener',
      hostKind: 'claude',
      contents: ['notice'],
      noticeBytesMax: limits.listenerBatchBytesMax,
      fullBytesMax: 0,
      pendingMax: limits.handOffsPendingMax,
      ringTimeoutMs: 10_000,
      attemptsMax: 1,
      retryGapMs: 0,
    }),
    state: (): BellState => {
      if (closed) return { state: 'gone' };
      return { state: armed() ? 'ready' : 'unarmed' };
    },
    ring: async (item) => {
      if (closed) return { outcome: 'unknown', code: 'stale_generation' };
      const outcome = await ports.store.write((tx) => append(tx, item, ports.clock.nowMs()));
      if (outcome.outcome === 'accepted') ports.wake.touch();
      return outcome;
    },
    close: () => {
      closed = true;
    },
  };
}

/** Row and state in one transaction, which looks again whether this ring still counts. */
function append(tx: Tx, item: RingItem, nowMs: number): RingOutcome {
  const { notification_id, session_id, attempt_id } = item;
  const created_at = new Date(nowMs).toISOString();
  const accepted = { notification_id, state: 'inbox_queued' };
  if (item.pairing === true) {
    tx.listener.append({ session_id, notification_id, text: item.text, created_at, kind: 'pairing' });
    return { outcome: 'accepted', content: 'notice', receipt: accepted };
  }
  const attempt = attempt_id === undefined ? undefined : tx.attempts.byId(attempt_id);
  // A hand-off counts while it stands; a notifier's ring while its reservation is current.
  const counts =
    attempt_id === undefined
      ? isPreparing(tx.notices.byId(notification_id), nowMs)
      : handOffStands(attempt, attempt && tx.sessions.connection(attempt.connection_id), nowMs);
  if (!counts) return { outcome: 'unknown', code: 'stale_generation' };
  const served = attempt !== undefined && tx.notices.isRung(notification_id, attempt.delivery_id);
  if (!served) {
    tx.listener.append({ session_id, notification_id, text: item.text, created_at });
    tx.notices.setState(notification_id, 'inbox_queued');
    tx.notices.markRung(notification_id);
    prune(tx, session_id, nowMs);
  }
  return { outcome: 'accepted', content: 'notice', receipt: accepted };
}

function prune(tx: Tx, sessionId: string, nowMs: number): void {
  const ids = tx.identity.chain(sessionId);
  const printed = tx.listener.cursor(ids[0] as string);
  if (printed > 0) tx.listener.prune(ids, printed, new Date(nowMs - rowsKeptMs).toISOString());
}
