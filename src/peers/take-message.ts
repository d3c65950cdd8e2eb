// Hop 3a: a verified message of a peer becomes a message of this store, in one transaction with what it makes obsolete, the bound it
// counts for and the receipt that its sender is told. One copy for each (sender key, id), however often it comes.

import { sha256Hex } from '../crypto/hash.ts';
import { checkQuota } from '../mailbox/commit.ts';
import { type Desk, newId } from '../mailbox/desk.ts';
import type { StoredMessage } from '../ports/mail.ts';
import type { Tx } from '../ports/store.ts';
import { isRefusal } from '../protocol/errors.ts';
import type { Json } from '../protocol/json.ts';
import { limits } from '../protocol/limits.ts';
import { needsNoAnswer } from '../protocol/loop-guard.ts';
import { type Message, readPayload, type StoredPayload } from '../protocol/message.ts';
import { readName } from '../protocol/scope.ts';
import type { MessageFields, ReceiptFact, RecordHeader, RefusedReason } from '../protocol/wire/record.ts';
import { presenceOf } from '../sessions/presence.ts';
import { localReplyTo } from './reply-ids.ts';
import { type Room, roomFor } from './room.ts';

export interface PeerMessage {
  header: RecordHeader;
  fields: MessageFields;
}

export type Taken =
  | { kind: 'stored'; message: Message }
  /** It is here already; its facts are told again. */
  | { kind: 'known' }
  | { kind: 'refused'; reason: RefusedReason }
  /** It stays on the relay until there is room. */
  | { kind: 'later'; why: 'inbox_full' | 'storage_quota_exceeded' };

type TakeDesk = Pick<Desk, 'clock' | 'random' | 'quota'>;

export function takeMessage(tx: Tx, desk: TakeDesk, arrived: PeerMessage): Taken {
  const { header, fields } = arrived;
  const nowMs = desk.clock.nowMs();
  const known = tx.messages.byOrigin(header.from, header.id);
  if (known !== undefined) {
    repeatFacts(tx, known, fields.from_device);
    return { kind: 'known' };
  }
  const reason = unfit(fields, nowMs);
  const payload = reason === undefined ? payloadOf(fields) : undefined;
  if (payload === undefined) return refuse(tx, arrived, reason ?? 'malformed', nowMs);
  const message = messageOf(tx, desk, arrived, nowMs);
  const room = roomFor(tx, message, payload, header.from, nowMs);
  if (room === 'full') return { kind: 'later', why: 'inbox_full' };
  if (isRefusal(checkQuota(tx, desk, payload.json))) return { kind: 'later', why: 'storage_quota_exceeded' };
  insert(tx, message, payload, { header, fields, room, nowMs });
  return { kind: 'stored', message };
}

/** What the decoder lets through and this store cannot hold, or no longer needs. */
function unfit(fields: MessageFields, nowMs: number): RefusedReason | undefined {
  if (fields.expires_at_ms <= nowMs) return 'expired';
  const names = [
    fields.project,
    fields.recipient,
    ...(fields.intended_session === undefined ? [] : [fields.intended_session]),
  ];
  if (names.some((name) => readName('name', name) !== name)) return 'malformed';
  if (fields.privacy !== 'private' && fields.privacy !== 'team') return 'malformed';
  const session = fields.target_kind === 'session';
  return session && (fields.intended_session !== undefined || fields.quiet === true)
    ? 'malformed'
    : undefined;
}

function payloadOf(fields: MessageFields): StoredPayload | undefined {
  const { content_type } = fields;
  if (content_type !== 'text/plain' && content_type !== 'application/json') return undefined;
  try {
    const payload = readPayload(content_type, JSON.parse(fields.payload) as Json);
    return isRefusal(payload) ? undefined : payload;
  } catch {
    return undefined;
  }
}

function refuse(tx: Tx, { header, fields }: PeerMessage, reason: RefusedReason, nowMs: number): Taken {
  tellRefused(tx, header, fields.from_device, reason, nowMs);
  return { kind: 'refused', reason };
}

/** A peer is told why a message of its was not taken. */
export function tellRefused(
  tx: Tx,
  header: RecordHeader,
  device: string,
  reason: RefusedReason,
  nowMs: number,
): void {
  tx.factsOut.add({
    peer_key: header.from,
    device,
    wire_id: header.id,
    fact: 'refused',
    detail: reason,
    at_ms: nowMs,
  });
}

function messageOf(tx: Tx, desk: TakeDesk, { header, fields }: PeerMessage, nowMs: number): Message {
  const { from_session, from_device, hops } = fields;
  const reply_to = fields.reply_to === undefined ? undefined : localReplyTo(tx, header.from, fields.reply_to);
  return {
    message_id: newId(desk, 'msg'),
    delivery_id: newId(desk, 'dlv'),
    event_id: newId(desk, 'evt'),
    project: fields.project,
    sender: fields.sender,
    recipient: fields.recipient,
    target_kind: fields.target_kind,
    ...(fields.intended_session !== undefined && { intended_session: fields.intended_session }),
    content_type: fields.content_type as Message['content_type'],
    privacy: fields.privacy as Message['privacy'],
    ...(fields.correlation_id !== undefined && { correlation_id: fields.correlation_id }),
    ...(reply_to !== undefined && { reply_to }),
    ...(fields.task_id !== undefined && { task_id: fields.task_id }),
    ...(fields.status !== undefined && { status: fields.status }),
    expires_at: new Date(fields.expires_at_ms).toISOString(),
    ...(fields.quiet === true && { quiet: true }),
    ...(hops > 0 && { hops }),
    // A clock that is ahead, within what the gate allows, holds no ring back.
    created_at: new Date(Math.min(header.time_ms, nowMs)).toISOString(),
    provenance: { transport: 'link', source_host: 'link', peer_key: header.from },
    origin: {
      sender_key: header.from,
      message_id: header.id,
      return_route: { ...(from_session !== undefined && { session: from_session }), device: from_device },
    },
  };
}

interface Insertion extends PeerMessage {
  room: Room;
  nowMs: number;
}

function insert(
  tx: Tx,
  message: Message,
  payload: StoredPayload,
  { header, fields, room, nowMs }: Insertion,
): void {
  const held =
    needsNoAnswer({ ...message, ...answering(fields), payload: JSON.parse(payload.json) as Json }) ||
    fields.hops > limits.hopsMax ||
    isTooMuch(tx, message, nowMs);
  tx.messages.insert({
    message,
    held,
    root_id: fields.root_id,
    payload: payload.json,
    payload_sha256: sha256Hex(payload.canonical),
    arrived_at: new Date(nowMs).toISOString(),
  });
  tx.tasks.supersede(message, []);
  endTask(tx, message);
  tx.linkRecords.insert({
    delivery_id: message.delivery_id,
    peer_key: header.from,
    owner: room.owner,
    bytes: room.bytes,
    sent_ms: header.time_ms,
  });
  tx.factsOut.add({
    peer_key: header.from,
    device: fields.from_device,
    wire_id: header.id,
    fact: 'stored',
    detail: room.nearlyFull ? 'nearly_full' : storedDetail(tx, message, nowMs),
    at_ms: nowMs,
  });
}

/** What it answers counts also where that was exchanged with another machine of this account, and is not known here. */
const answering = ({ reply_to }: MessageFields): { reply_to?: string } =>
  reply_to === undefined ? {} : { reply_to };

/** Whoever works on the task here hears that it is over. */
function endTask(tx: Tx, { project, recipient, target_kind, task_id, status }: Message): void {
  if (task_id === undefined || !isEnd(status)) return;
  const inbox = target_kind === 'session' ? (tx.identity.chain(recipient)[0] as string) : recipient;
  tx.tasks.clear({ project, task_id, target_kind, recipient: inbox });
}

const isEnd = (status: Message['status']): boolean =>
  status === 'result' || status === 'failed' || status === 'canceled';

type StoredDetail = Extract<ReceiptFact['fact'], { kind: 'stored' }>['detail'];

function storedDetail(tx: Tx, message: Message, nowMs: number): StoredDetail {
  const presence = presenceOf(tx, message, nowMs);
  if (presence === 'live' || presence === 'deaf') return presence;
  if (presence === 'full') return 'live';
  return presence === 'unknown' || presence === 'not_checked' ? 'unknown' : 'away';
}

/** More answers of one session, or of all that the peer names, than a pair of sessions may exchange: they wake nobody. */
function isTooMuch(tx: Tx, { hops = 0, project, recipient, origin }: Message, nowMs: number): boolean {
  if (hops === 0 || origin === undefined) return false;
  const window = {
    since: new Date(nowMs - limits.automaticWindowMs).toISOString(),
    until: new Date(nowMs).toISOString(),
    signedSince: new Date(nowMs - limits.automaticWindowMs - limits.signedForMs).toISOString(),
  };
  const of = { peer_key: origin.sender_key, project, recipient };
  const session = origin.return_route?.session;
  const count = (most: number, from: typeof of & { session?: string }): boolean =>
    tx.messages.fromPeer(from, window, most).length >= most;
  return (
    count(limits.automaticCountMax * 4, of) ||
    (session !== undefined && count(limits.automaticCountMax, { ...of, session }))
  );
}

/** All that is known of the message is told again: its sender may have lost it. */
export function repeatFacts(tx: Tx, { message, arrived_at }: StoredMessage, device: string): void {
  const { origin, delivery_id } = message;
  if (origin === undefined) return;
  const to = { peer_key: origin.sender_key, device, wire_id: origin.message_id };
  // Who was live when it came is not known any more.
  tx.factsOut.add({ ...to, fact: 'stored', detail: 'unknown', at_ms: Date.parse(arrived_at) });
  for (const fact of tx.receipts.facts(delivery_id)) {
    if (fact.source !== 'receipt') continue;
    const { receipt_kind: kind } = fact;
    if (kind !== 'intake' && kind !== 'ack' && kind !== 'disposition') continue;
    const detail = kind === 'ack' ? 'ack' : fact.value;
    tx.factsOut.add({ ...to, fact: kind, detail, at_ms: Date.parse(fact.recorded_at) });
  }
}
