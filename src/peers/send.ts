// Hop 2 with `peer`: message and outbox entry in one durable transaction; what is said then is that it waits here, and what was known
// of the recipient last. What becomes of it afterwards is told by receipts.

import { chained, checkQuota, type Draft, draft, earlierOf, put, type Stored } from '../mailbox/commit.ts';
import type { Caller, Desk } from '../mailbox/desk.ts';
import { checkLoop } from '../mailbox/guard.ts';
import { deliveryStateOf } from '../mailbox/state.ts';
import type { Tx } from '../ports/store.ts';
import { isRefusal, Refusal, type Result } from '../protocol/errors.ts';
import { hex } from '../protocol/id.ts';
import { utf8Bytes } from '../protocol/json.ts';
import { limits } from '../protocol/limits.ts';
import { needsNoAnswer } from '../protocol/loop-guard.ts';
import type { Message } from '../protocol/message.ts';
import { foldPetname } from '../protocol/names/petname.ts';
import type { SendRequest } from '../protocol/requests.ts';
import type { Presence } from '../protocol/session.ts';
import type { DeliveryState } from '../protocol/states.ts';
import { uuidText } from '../protocol/wire/bytes.ts';
import { chooseDevice, type KnownDevice, knownDevices } from './choose-device.ts';
import { remotePresence } from './remote-presence.ts';
import { type Addressee, addressee } from './who.ts';

export type PeerSendAnswer = Message & {
  delivery_state: DeliveryState;
  recipient_presence: Presence;
  /** How old what is said of the recipient is; absent where nothing was ever heard of its machine. */
  presence_age_ms?: number;
  quieted?: 'loop_guard';
  /** A session that is live, where the one that is meant is not; it can be named as recipient instead. */
  live_alternative?: { session_id: string; principal: string };
};

export async function sendToPeer(
  desk: Desk,
  request: SendRequest & { peer: string },
  caller: Caller,
): Promise<Result<PeerSendAnswer>> {
  // The key that was used before is answered before the peer is looked at, so a peer that is unknown is no answer yet.
  const to = addressee(desk.account, request.peer);
  const peer = isRefusal(to) ? request.peer : to.key;
  const nowMs = desk.clock.nowMs();
  const given = draft(desk, { ...request, peer }, caller);
  if (isRefusal(given)) return given;
  const secret = desk.random.bytes(32);
  const entry = { wire_id: uuidText(secret.subarray(0, 16)), secret: hex(secret.subarray(16)) };
  const stored = await desk.store.write(
    (tx) => earlierOf(tx, given) ?? insert(tx, desk, given, { to, caller, entry, nowMs }),
  );
  if (isRefusal(stored)) return stored;
  desk.wake.touch();
  return desk.store.read((tx) => answerOf(tx, stored, request.peer, to, desk.clock.nowMs()));
}

interface Sending {
  to: Result<Addressee>;
  caller: Caller;
  entry: { wire_id: string; secret: string };
  nowMs: number;
}

function insert(tx: Tx, desk: Desk, given: Draft, { to, caller, entry, nowMs }: Sending): Result<Stored> {
  if (isRefusal(to)) return notYet(tx, given, to);
  const { message, chain } = chained(tx, desk, given.message, caller);
  const device = deviceFor(tx, message, to, nowMs);
  const refusal =
    checkSelf(tx, message, to, caller) ??
    (isRefusal(device) ? device : undefined) ??
    checkExpiry(message, nowMs) ??
    checkLoop(tx, message, nowMs) ??
    checkQuota(tx, desk, given.payload_json) ??
    checkRoom(tx, given.payload_json);
  if (refusal !== undefined) return refusal;
  const expires_at = message.expires_at ?? new Date(nowMs + limits.peerExpiryMs).toISOString();
  const stored = {
    message: { ...message, expires_at },
    held: needsNoAnswer({ ...message, payload: given.payload }),
  };
  put(tx, given, stored, given.idempotency_key, chain.root_id ?? entry.wire_id);
  tx.outbox.insert({
    ...entry,
    message_id: message.message_id,
    peer_key: to.key,
    bytes: utf8Bytes(given.payload_json),
    expires_ms: Date.parse(expires_at),
  });
  if (typeof device === 'string') tx.outbox.route(message.message_id, device);
  return stored;
}

/** A name whose pairing is under way is no unknown one. */
function notYet(tx: Tx, { message }: Draft, unknown: Refusal): Refusal {
  return unknown.code === 'unknown_peer' && isAsked(tx, message.peer as string)
    ? new Refusal('peer_not_paired', `pairing with ${JSON.stringify(message.peer)} is not complete yet`, {
        field: 'peer',
      })
    : unknown;
}

/** The device that it goes to, if one is known by now. */
function deviceFor(tx: Tx, message: Message, to: Addressee, nowMs: number): Result<string | undefined> {
  const choice = chooseDevice(knownDevices(tx, to.key, nowMs), message);
  if (choice === 'none') return undefined;
  if ('device' in choice) return choice.device;
  return new Refusal(
    'ambiguous_peer',
    `several machines of ${JSON.stringify(to.name)} fit: ${choice.several.map(named).join('; ')}. Name one session, with target_kind session`,
    { field: 'recipient', devices: choice.several.map(({ row }) => row.device).join(' ') },
  );
}

const named = ({ row, state }: KnownDevice): string => {
  const sessions = row.sessions.slice(0, 3).map(({ session_id }) => JSON.stringify(session_id));
  return `${row.device} (${state}${sessions.length === 0 ? '' : `; sessions ${sessions.join(', ')}`})`;
};

/** Mail to the own key never goes back to the session that sends it. */
function checkSelf(tx: Tx, message: Message, to: Addressee, { session }: Caller): Refusal | undefined {
  if (!to.own || session === undefined) return undefined;
  const meant = message.target_kind === 'session' ? message.recipient : message.intended_session;
  return meant !== undefined && tx.identity.chain(session).includes(meant)
    ? new Refusal('invalid_request', 'that is this session itself', { field: 'recipient' })
    : undefined;
}

function checkExpiry({ expires_at }: Message, nowMs: number): Refusal | undefined {
  if (expires_at === undefined) return undefined;
  const aheadMs = Date.parse(expires_at) - nowMs;
  return aheadMs >= limits.peerExpiryMsMin && aheadMs <= limits.peerExpiryMsMax
    ? undefined
    : new Refusal('invalid_request', 'with peer, expires_at must lie 60 s to 30 days ahead', {
        field: 'expires_at',
      });
}

function checkRoom(tx: Tx, payloadJson: string): Refusal | undefined {
  const { count, bytes } = tx.outbox.totals();
  const fits = count < limits.outboxCountMax && bytes + utf8Bytes(payloadJson) <= limits.outboxBytesMax;
  return fits
    ? undefined
    : new Refusal(
        'outbox_full',
        `${count} messages (${bytes} bytes) are on their way to other machines; no more fit`,
        {
          count,
          bytes,
        },
      );
}

function answerOf(
  tx: Tx,
  { message, held }: Stored,
  name: string,
  to: Result<Addressee>,
  nowMs: number,
): PeerSendAnswer {
  const key = message.peer as string;
  const seen = remotePresence(
    knownDevices(tx, key, nowMs),
    tx.outbox.of(message.message_id)?.device ?? undefined,
    message,
  );
  return {
    ...message,
    peer: isRefusal(to) ? name : to.name,
    delivery_state: deliveryStateOf(tx, message.delivery_id),
    ...seen,
    ...(held && { quieted: 'loop_guard' as const }),
  };
}

/** Whether the operator asked somebody to pair whom he will call so. */
const isAsked = (tx: Tx, name: string): boolean =>
  tx.pairing.asked
    .all()
    .some((asked) => foldPetname(asked.name) === foldPetname(name) || asked.peer_key === name);
