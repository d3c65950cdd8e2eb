// Hop 8 from another machine: what a peer's store recorded of a message that was sent to it. Only the key that the message went to
// may say anything of it, and a fact changes nothing the second time.

import { type Desk, newId, timestamp } from '../mailbox/desk.ts';
import type { OutboxRow } from '../ports/peers.ts';
import type { Tx } from '../ports/store.ts';
import type { PeerFact } from '../protocol/receipts.ts';
import type { ReceiptFact } from '../protocol/wire/record.ts';

type TakeDesk = Pick<Desk, 'clock' | 'random'>;

/** What a stale message is signed afresh after: its sender's clock, or the peer's, is off by more than a day. */
const staleRetryMs = 3_600_000;

/** @returns how many of the facts are about nothing that was sent to this key */
export function takeFacts(tx: Tx, desk: TakeDesk, from: string, facts: readonly ReceiptFact[]): number {
  let foreign = 0;
  for (const fact of facts) {
    const entry = tx.outbox.byWireId(fact.message_id);
    if (entry?.peer_key === from) takeFact(tx, desk, entry, fact);
    else foreign += 1;
  }
  return foreign;
}

function takeFact(tx: Tx, desk: TakeDesk, entry: OutboxRow, { fact, time_ms }: ReceiptFact): void {
  const at = timestamp(desk);
  if (fact.kind === 'refused' && fact.detail === 'stale') {
    if (entry.ended_at === null) retryStale(tx, entry, desk.clock.nowMs());
  } else if (entry.ended_at === null && (fact.kind === 'stored' || fact.kind === 'refused')) {
    tx.outbox.end(entry.message_id, at);
  }
  const row: PeerFact = {
    receipt_id: newId(desk, 'rcp'),
    receipt_kind: fact.kind,
    value: fact.kind === 'ack' ? 'acknowledged' : fact.detail,
    source: 'peer',
    actor: 'peer',
    peer_key: entry.peer_key,
    peer_recorded_at: new Date(time_ms).toISOString(),
    recorded_at: at,
  };
  const key = keyOf(fact, time_ms);
  tx.receipts.insertLinkFact(
    { ...row, delivery_id: entry.delivery_id, idempotency_key: key },
    newId(desk, 'evt'),
  );
}

/** A peer may tell of several dispositions, and of everything else once. */
function keyOf(fact: ReceiptFact['fact'], timeMs: number): string {
  if (fact.kind === 'disposition') return `peer:disposition:${fact.detail}:${timeMs}`;
  if (fact.kind === 'stored' || fact.kind === 'ack') return `peer:${fact.kind}`;
  return `peer:${fact.kind}:${fact.detail}`;
}

function retryStale(tx: Tx, { message_id }: OutboxRow, nowMs: number): void {
  // One that is over at its relay stays so.
  for (const post of tx.outbox.posts(message_id))
    if (post.next_ms !== null) tx.outbox.putPost({ ...post, next_ms: nowMs + staleRetryMs });
}
