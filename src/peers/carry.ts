// Hop 3r: messages on their way to other machines. What is kept is the content; each attempt is signed and sealed afresh, with the
// same id. An entry ends by its receiver's own receipt, by expiry, or here with a reason that its sender is told.

import { type Desk, newId } from '../mailbox/desk.ts';
import type { OutboxPost, OutboxRow } from '../ports/peers.ts';
import type { RelayFailure } from '../ports/relay.ts';
import type { Tx } from '../ports/store.ts';
import type { OutboxEnd, OutboxFact } from '../protocol/receipts.ts';
import type { WireRecord } from '../protocol/wire/record.ts';
import { wireReplyTo } from './reply-ids.ts';
import { leftFailures, longestPauseMs, repostMs, retryMs } from './schedule.ts';

type CarryDesk = Pick<Desk, 'clock' | 'random'>;

/** After which a queue that no relay knows is given up. */
const unknownQueueMs = 604_800_000;

/** The record of an entry, to be signed now. */
export function messageRecord(
  tx: Tx,
  entry: OutboxRow,
  from: { key: string; device: string },
  nowMs: number,
): WireRecord | undefined {
  const stored = tx.messages.byId(entry.message_id);
  if (stored === undefined) return undefined;
  const { message: m, root_id = entry.wire_id } = stored;
  const reply_to = m.reply_to === undefined ? undefined : wireReplyTo(tx, entry.peer_key, m.reply_to);
  return {
    type: 'message',
    from: from.key,
    to: entry.peer_key,
    time_ms: nowMs,
    id: entry.wire_id,
    fields: {
      project: m.project,
      recipient: m.recipient,
      target_kind: m.target_kind,
      ...(m.intended_session !== undefined && { intended_session: m.intended_session }),
      content_type: m.content_type,
      payload: tx.messages.payload(m.message_id).json,
      ...(m.status !== undefined && { status: m.status }),
      ...(m.task_id !== undefined && { task_id: m.task_id }),
      ...(reply_to !== undefined && { reply_to }),
      ...(m.correlation_id !== undefined && { correlation_id: m.correlation_id }),
      sender: m.sender,
      privacy: m.privacy,
      expires_at_ms: entry.expires_ms,
      hops: m.hops ?? 0,
      root_id,
      ...(m.provenance.session !== undefined && { from_session: m.provenance.session }),
      from_device: from.device,
      ...(m.quiet === true && { quiet: true as const }),
    },
  };
}

/** One relay took it: a fact, once for each relay. Its receiver's state stays unknown. */
export function relayTook(tx: Tx, desk: CarryDesk, entry: OutboxRow, post: OutboxPost): void {
  const nowMs = desk.clock.nowMs();
  const accepts = post.accepts + 1;
  tx.outbox.putPost({
    ...post,
    attempts: post.attempts + 1,
    failures: 0,
    accepts,
    accepted_ms: post.accepted_ms ?? nowMs,
    next_ms: entry.ended_at === null ? nowMs + repostMs(accepts) : null,
    parked: false,
    last_error: null,
  });
  if (post.accepted_ms === null) addFact(tx, desk, entry, 'relay_accept', post.relay, `relay:${post.relay}`);
}

/** @param jitter 0 to 1 */
export function relayFailed(
  tx: Tx,
  desk: CarryDesk,
  entry: OutboxRow,
  post: OutboxPost,
  failure: RelayFailure,
  jitter: number,
): void {
  if (entry.ended_at !== null) return;
  const nowMs = desk.clock.nowMs();
  const failures = post.failures + 1;
  const forGood = isForGood(tx, entry, failure, nowMs);
  tx.outbox.putPost({
    ...post,
    attempts: post.attempts + 1,
    failures,
    next_ms: forGood
      ? null
      : nowMs + Math.max(retryMs(failures, jitter), Math.min(failure.retryAfterMs ?? 0, longestPauseMs)),
    parked: failure.queueUnknown,
    last_error: failure.message,
  });
  if (failure.queueUnknown && moved(tx, entry)) return;
  const others = tx.outbox
    .posts(post.message_id)
    .some((one) => one.next_ms !== null || one.accepted_ms !== null);
  if (forGood && !others) endEntry(tx, desk, entry, 'relay_refused');
}

/**
 * Where another machine of the peer was heard of later, the one whose queue is gone was replaced by it. A relay that lost its
 * store knows no queue either, until its owner polls: what it took before is given some time.
 */
function moved(tx: Tx, { message_id, peer_key, device }: OutboxRow): boolean {
  const [newest] = [...tx.devices.of(peer_key)].sort((a, b) => b.heard_ms - a.heard_ms);
  const isElsewhere = newest !== undefined && newest.device !== device;
  const left = tx.outbox
    .posts(message_id)
    .filter(
      ({ parked, accepted_ms, failures }) => !parked || (accepted_ms !== null && failures < leftFailures),
    );
  if (!isElsewhere || left.length > 0) return false;
  tx.outbox.dropPosts(message_id);
  tx.outbox.route(message_id, newest.device);
  return true;
}

function isForGood(
  tx: Tx,
  { message_id }: OutboxRow,
  { kind, status, queueUnknown }: RelayFailure,
  nowMs: number,
): boolean {
  if (kind !== 'refused') return false;
  if (status === 400 || status === 413) return true;
  const created = tx.messages.byId(message_id)?.message.created_at;
  return queueUnknown && created !== undefined && nowMs - Date.parse(created) >= unknownQueueMs;
}

/** It goes out no more, for a reason of this machine; what was known of it before stays. */
export function endEntry(tx: Tx, desk: CarryDesk, entry: OutboxRow, reason: OutboxEnd): void {
  tx.outbox.end(entry.message_id, new Date(desk.clock.nowMs()).toISOString());
  addFact(tx, desk, entry, 'refused', reason, `outbox:${reason}`);
}

/** @returns how many ended */
export function expireEntries(tx: Tx, desk: CarryDesk, count: number): number {
  const expired = tx.outbox.expired(desk.clock.nowMs(), count);
  for (const entry of expired) {
    tx.outbox.end(entry.message_id, new Date(desk.clock.nowMs()).toISOString());
    addFact(tx, desk, entry, 'expired', 'expired', 'outbox:expired');
  }
  return expired.length;
}

/** What was on its way to a peer that was removed. */
export function endForPeer(tx: Tx, desk: CarryDesk, peerKey: string): number {
  const open = tx.outbox.open(Number.MAX_SAFE_INTEGER, peerKey);
  for (const entry of open) endEntry(tx, desk, entry, 'peer_removed');
  return open.length;
}

function addFact(
  tx: Tx,
  desk: CarryDesk,
  { delivery_id }: OutboxRow,
  receipt_kind: OutboxFact['receipt_kind'],
  value: string,
  idempotency_key: string,
): void {
  const fact: OutboxFact = {
    receipt_id: newId(desk, 'rcp'),
    receipt_kind,
    value,
    source: 'outbox',
    actor: 'postbell-router',
    recorded_at: new Date(desk.clock.nowMs()).toISOString(),
  };
  tx.receipts.insertLinkFact({ ...fact, delivery_id, idempotency_key }, newId(desk, 'evt'));
}
