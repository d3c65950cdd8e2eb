// Sessions are rung for pairing by the same bells and notifiers as for mail, once a minute at most, and by a text of its own. Rows
// go when the host took the notice, or may have; a refusal is tried again until the operator has looked.

import type { Bell, RingItem, RingOutcome } from '../ports/bell.ts';
import type { PairingNotice } from '../ports/pairing.ts';
import type { Tx } from '../ports/store.ts';
import { hex } from '../protocol/id.ts';
import { limits } from '../protocol/limits.ts';
import { renderPairingNotice } from '../protocol/pairing-notice.ts';
import { type Desk, newId, timestamp } from './desk.ts';
import { ringOnce } from './ring-once.ts';

type Ports = Pick<Desk, 'store' | 'clock' | 'random'>;

/** While a host that takes one prompt at a time is in a turn. */
const busyLookMs = 1_000;

interface Reserved {
  root: string;
  seqs: readonly number[];
  item: RingItem;
}

/**
 * One round: rings where something is due.
 * @returns when to look again at the latest; undefined where nothing waits
 */
export async function ringForPairing(desk: Ports, session: string, bell: Bell): Promise<number | undefined> {
  const dueMs = desk.store.read((tx) => due(tx, desk, session)?.dueMs);
  const nowMs = desk.clock.nowMs();
  if (dueMs === undefined || dueMs > nowMs) return dueMs;
  if (bell.describe().pendingMax === 1 && bell.state().state === 'busy') return nowMs + busyLookMs;
  const reserved = await desk.store.write((tx) => reserve(tx, desk, session));
  if (reserved === undefined) return nowMs;
  const { outcome } = await ringOnce(desk.clock, bell, reserved.item);
  await desk.store.write((tx) => record(tx, desk, reserved, outcome));
  return desk.clock.nowMs();
}

/** What the session is to be rung for, and when. A clock that was set back holds up nobody. */
function due(
  tx: Tx,
  { clock }: Ports,
  session: string,
): { root: string; waiting: PairingNotice[]; dueMs: number } | undefined {
  const root = tx.identity.chain(session)[0] as string;
  const waiting = tx.pairing.notices.waiting(root);
  if (waiting.length === 0) return undefined;
  const nowMs = clock.nowMs();
  const untilMs = tx.pairing.notices.pausedUntilMs(root);
  return { root, waiting, dueMs: untilMs > nowMs + limits.pairingNoticeAgainMs ? nowMs : untilMs };
}

/** Looks again under the write lock, and holds the next one back: a crash before the outcome is known rings again after that. */
function reserve(tx: Tx, desk: Ports, session: string): Reserved | undefined {
  const found = due(tx, desk, session);
  const nowMs = desk.clock.nowMs();
  if (found === undefined || found.dueMs > nowMs) return undefined;
  const { root, waiting } = found;
  const seqs = waiting.map(({ seq }) => seq);
  tx.pairing.notices.claim(seqs, root);
  tx.pairing.notices.pause(root, nowMs + limits.pairingNoticeEveryMs);
  return { root, seqs, item: itemOf(tx, desk, session, waiting) };
}

function itemOf(tx: Tx, { random }: Ports, session: string, waiting: readonly PairingNotice[]): RingItem {
  const hasRequests = waiting.some(({ kind }) => kind === 'request');
  const conflicts = waiting.flatMap(({ kind, name, peer_key }) =>
    kind === 'conflict' ? [{ name: name ?? '', key: peer_key }] : [],
  );
  const requests = hasRequests ? tx.pairing.requests.all().filter(({ listed }) => !listed).length : 0;
  return {
    content: 'notice',
    notification_id: hex(random.bytes(6)),
    text: renderPairingNotice({ requests, conflicts }),
    covered: [],
    session_id: session,
    pairing: true,
  };
}

function record(tx: Tx, desk: Ports, { root, seqs, item }: Reserved, outcome: RingOutcome): void {
  clearSlot(tx, root);
  if (outcome.outcome !== 'rejected') {
    tx.pairing.notices.remove(seqs);
    return;
  }
  tx.pairing.notices.pause(root, desk.clock.nowMs() + limits.pairingNoticeAgainMs);
  // The table being full holds nothing up.
  if (tx.failures.count(root) < limits.failuresMax)
    tx.failures.save({
      id: newId(desk, 'fdl'),
      session_root: root,
      kind: 'pairing',
      notification_id: item.notification_id,
      message_id: null,
      sender: 'postbell',
      reason: outcome.code,
      text: item.text,
      recorded_at: timestamp(desk),
    });
}

/** Pairing notices share one slot, as those of mail do. */
function clearSlot(tx: Tx, root: string): void {
  for (const { id, kind } of tx.failures.list(root)) if (kind === 'pairing') tx.failures.remove(id);
}
