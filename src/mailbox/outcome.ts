// What a ring came to, written under its notice id: a result for an older notice changes nothing. The host is never rung
// again because a result could not be written.

import type { RingItem, RingOutcome } from '../ports/bell.ts';
import type { Tx } from '../ports/store.ts';
import { Fault } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import type { Bell as BellName } from '../protocol/session.ts';
import type { HandOffState } from '../protocol/states.ts';
import { type Desk, newId, timestamp } from './desk.ts';
import { writePatiently } from './patience.ts';

type Ports = Pick<Desk, 'store' | 'clock' | 'random'>;

/** A ring that was made. */
export interface Rang {
  root: string;
  bell: BellName;
  item: RingItem;
  /** The text of the notice, also where a whole message was pushed. */
  notice: string;
  /** Deliveries that it rang for; what its reservation came to cover since then is not among them. */
  covers: readonly string[];
  /** Of the router's hand-off. */
  delivery_id?: string;
}

/** What an accepted ring proves, by bell. The listener's row and its state are one write of its own. */
const acceptedState: Readonly<Record<Exclude<BellName, 'none' | 'listener'>, HandOffState>> = {
  channel: 'notification_sent',
  'codex-queue': 'host_queued',
  acp: 'host_queued',
};

type Accepted = Extract<RingOutcome, { outcome: 'accepted' }>;

/** As long as the longest reservation: then the schedule has rung anew. */
const patienceMs = 300_000;

/** @param onFault told of a failure that could not be saved, and of each write that must be tried again */
export async function recordOutcome(
  ports: Ports,
  rang: Rang,
  outcome: RingOutcome,
  onFault: (error: unknown) => void,
): Promise<void> {
  if (outcome.outcome === 'unknown' && outcome.code === 'stale_generation') return;
  const save = <T>(work: (tx: Tx) => T): Promise<T> =>
    writePatiently(ports.clock, patienceMs, () => ports.store.write(work), onFault);
  if (outcome.outcome === 'accepted') {
    const written = rang.bell === 'listener' && !ports.store.read((tx) => hasSlot(tx, rang.root));
    if (!written) await save((tx) => accept(tx, rang, outcome));
    return;
  }
  const counts = await save((tx) => fail(tx, rang));
  if (counts) await saveFailure(ports, rang, outcome.code).catch(onFault);
}

function accept(tx: Tx, { root, bell, item, covers }: Rang, { content, receipt }: Accepted): void {
  if (!isNewest(tx, root, item)) return;
  if (bell !== 'listener' && bell !== 'none') {
    tx.notices.setState(item.notification_id, acceptedState[bell]);
    if (content === 'notice') tx.notices.setReceipt(item.notification_id, JSON.stringify(receipt));
    tx.notices.markRung(item.notification_id, covers);
  }
  tx.failures.clearSlot(root);
}

/** Only what was rung for by nothing else has failed. */
function fail(tx: Tx, { root, item, delivery_id }: Rang): boolean {
  if (!isNewest(tx, root, item)) return false;
  if (delivery_id !== undefined) tx.notices.fail(delivery_id, tx.identity.chain(root));
  else if (tx.notices.byId(item.notification_id)?.state === 'preparing')
    tx.notices.setState(item.notification_id, 'delivery_failed');
  return true;
}

const isNewest = (tx: Tx, root: string, item: RingItem): boolean =>
  tx.notices.newest(root)?.notification_id === item.notification_id;

const hasSlot = (tx: Tx, root: string): boolean =>
  tx.failures.list(root).some((failure) => failure.kind === 'notice');

/** In a transaction of its own: a table of failures that is full or broken holds nothing up. */
async function saveFailure(ports: Ports, { root, item, notice }: Rang, code: string): Promise<void> {
  const row = {
    id: newId(ports, 'fdl'),
    session_root: root,
    kind: 'notice',
    notification_id: item.notification_id,
    message_id: null,
    sender: 'postbell',
    reason: code,
    text: notice,
    recorded_at: timestamp(ports),
  } as const;
  await ports.store.write((tx) => {
    if (!hasSlot(tx, root) && tx.failures.count(root) >= limits.failuresMax)
      throw new Fault('storage_quota_exceeded', `${limits.failuresMax} failed deliveries are kept already`);
    tx.failures.save(row);
  });
}
