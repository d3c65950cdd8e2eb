// The one transaction of a send: message, delivery, event and idempotency record, or the message that the key already
// names, or a refusal that leaves no row of any kind. The first check that fails is the answer.

import { sha256Hex } from '../crypto/hash.ts';
import type { Tx } from '../ports/store.ts';
import { isRefusal, Refusal, type Result } from '../protocol/errors.ts';
import type { Json } from '../protocol/json.ts';
import { utf8Bytes } from '../protocol/json.ts';
import { needsNoAnswer } from '../protocol/loop-guard.ts';
import { contentFields, contentOf, type Message, readPayload } from '../protocol/message.ts';
import type { SendRequest } from '../protocol/requests.ts';
import { nameable } from '../protocol/session.ts';
import { type Caller, type Desk, newId, timestamp } from './desk.ts';
import { type Chain, chainOf, checkLoop } from './guard.ts';

/** A message as it will be stored, before the store was asked. */
export interface Draft {
  message: Message;
  payload: Json;
  idempotency_key: string;
  content_sha256: string;
  payload_json: string;
  payload_sha256: string;
}

export interface Stored {
  message: Message;
  /** The loop guard found that it needs no turn. */
  held: boolean;
}

export function draft(desk: Desk, request: SendRequest, caller: Caller): Result<Draft> {
  const { payload, idempotency_key, ...fields } = contentFields(request);
  const encoded = readPayload(fields.content_type, payload);
  if (isRefusal(encoded)) return encoded;
  const message: Message = {
    ...freshIds(desk),
    ...fields,
    created_at: timestamp(desk),
    provenance: {
      transport: caller.transport,
      source_host: caller.source_host,
      ...(caller.session !== undefined && { session: caller.session }),
    },
  };
  return {
    message,
    payload,
    idempotency_key,
    content_sha256: sha256Hex(contentOf(request, encoded.canonical)),
    payload_json: encoded.json,
    payload_sha256: sha256Hex(encoded.canonical),
  };
}

/** Stores the draft, or answers what its key already names. */
export const store = (tx: Tx, desk: Desk, given: Draft, caller: Caller): Result<Stored> =>
  earlierOf(tx, given) ?? insert(tx, desk, given, caller);

/** The earlier message of the key with the same content, a conflict, or nothing. */
export function earlierOf(tx: Tx, given: Draft): Result<Stored> | undefined {
  const { message, idempotency_key, content_sha256 } = given;
  const earlier = tx.messages.byIdempotencyKey(message.project, message.sender, idempotency_key);
  if (earlier === undefined) return undefined;
  if (earlier.content_sha256 !== content_sha256)
    return new Refusal('idempotency_conflict', 'this idempotency_key was used for other content', {
      field: 'idempotency_key',
      message_id: earlier.message_id,
    });
  const stored = tx.messages.byId(earlier.message_id) as NonNullable<ReturnType<Tx['messages']['byId']>>;
  return { message: stored.message, held: stored.held };
}

/** The message with its place in its chain of answers. */
export function chained(
  tx: Tx,
  desk: Desk,
  message: Message,
  caller: Caller,
): { message: Message; chain: Chain } {
  const chain = chainOf(tx, desk, message.reply_to, caller);
  return { message: chain.hops === 0 ? message : { ...message, hops: chain.hops }, chain };
}

function insert(tx: Tx, desk: Desk, given: Draft, caller: Caller): Result<Stored> {
  const nowMs = desk.clock.nowMs();
  const { message, chain } = chained(tx, desk, given.message, caller);
  const refusal =
    checkExpiry(message, nowMs) ??
    checkNameable(tx, message) ??
    checkLoop(tx, message, nowMs) ??
    checkQuota(tx, desk, given.payload_json);
  if (refusal !== undefined) return refusal;
  const held = needsNoAnswer({ ...message, payload: given.payload });
  const stored = { message, held };
  put(tx, given, stored, given.idempotency_key, chain.root_id);
  return stored;
}

/** Stores the content of the draft as this message, under this key; what it makes obsolete waits no more. */
export function put(
  tx: Tx,
  given: Draft,
  { message, held }: Stored,
  key: string,
  root_id: string | undefined,
): void {
  tx.messages.insert({
    message,
    held,
    idempotency: { key, content_sha256: given.content_sha256 },
    ...(root_id !== undefined && { root_id }),
    payload: given.payload_json,
    payload_sha256: given.payload_sha256,
  });
  const { session } = message.provenance;
  tx.tasks.supersede(message, session === undefined ? [] : tx.identity.chain(session));
}

export const freshIds = (desk: Desk): Pick<Message, 'message_id' | 'delivery_id' | 'event_id'> => ({
  message_id: newId(desk, 'msg'),
  delivery_id: newId(desk, 'dlv'),
  event_id: newId(desk, 'evt'),
});

function checkExpiry({ expires_at }: Message, nowMs: number): Refusal | undefined {
  return expires_at !== undefined && Date.parse(expires_at) <= nowMs
    ? new Refusal('invalid_request', 'expires_at must lie ahead', { field: 'expires_at' })
    : undefined;
}

/** A session that cannot name itself when it records intake could never take the message in. */
function checkNameable(tx: Tx, { project, intended_session }: Message): Refusal | undefined {
  if (intended_session === undefined) return undefined;
  const registered = tx.sessions.registered(project, tx.identity.chain(intended_session));
  if (registered === undefined || nameable(registered.adapter_kind)) return undefined;
  return new Refusal(
    'session_not_nameable',
    `a session of host ${registered.host_kind} (${registered.adapter_kind}) cannot name itself`,
    { field: 'intended_session', host_kind: registered.host_kind },
  );
}

/** The owner's budget counts logical payload bytes. */
export function checkQuota(tx: Tx, { quota }: Pick<Desk, 'quota'>, payloadJson: string): Refusal | undefined {
  if (quota === undefined) return undefined;
  if (quota === 'malformed')
    return new Refusal('invalid_storage_quota', 'POSTBELL_STORAGE_QUOTA_BYTES is no whole number');
  const bytes = tx.messages.payloadBytes() + utf8Bytes(payloadJson);
  return bytes > quota
    ? new Refusal('storage_quota_exceeded', `payloads would take ${bytes} bytes; the owner allows ${quota}`)
    : undefined;
}
