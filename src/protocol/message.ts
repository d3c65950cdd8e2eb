// What a message is: routing, links and payload as given, never changed after it is stored.

import { Refusal, type Result } from './errors.ts';
import { canonicalJson, type Json, utf8Bytes } from './json.ts';
import { limits } from './limits.ts';
import type { SendRequest } from './requests.ts';

export type TargetKind = 'principal' | 'session';
export type MessageStatus = 'update' | 'needs_input' | 'result' | 'failed' | 'canceled';

/** Set by the transport, never by the caller. */
export interface Provenance {
  transport: 'mcp' | 'cli' | 'link';
  source_host: string;
  session?: string;
  /** Of a message from another machine, the verified key. */
  peer_key?: string;
}

/** Where a message from another machine comes from. */
export interface Origin {
  sender_key: string;
  /** The petname of that key, `self`, or the key where it is no peer any more. Left out where nobody asked who it is. */
  peer?: string;
  /** The id that its sender gave it. */
  message_id: string;
  /** Steers replies only: a claim of that key. */
  return_route?: { session?: string; device?: string };
}

/** A message as every surface shows it; `?` fields are left out, never null. */
export interface Message {
  message_id: string;
  delivery_id: string;
  event_id: string;
  project: string;
  sender: string;
  recipient: string;
  target_kind: TargetKind;
  intended_session?: string;
  content_type: 'text/plain' | 'application/json';
  privacy: 'private' | 'team';
  correlation_id?: string;
  reply_to?: string;
  task_id?: string;
  status?: MessageStatus;
  expires_at?: string;
  quiet?: boolean;
  /** Of a message to another machine: the key it goes to, shown by its petname. */
  peer?: string;
  /** How long the chain of answers is that led here; left out where it answers nothing that is known. */
  hops?: number;
  created_at: string;
  provenance: Provenance;
  origin?: Origin;
}

/** The one session that may take the message in, where it is meant for one. */
export function sessionMeant(message: Message): string | undefined {
  return message.target_kind === 'session' ? message.recipient : message.intended_session;
}

/** The payload in its stored form. */
export interface StoredPayload {
  /** Compact JSON. */
  json: string;
  canonical: string;
}

/** Compact and canonical form of a payload, or why it cannot be one. */
export function readPayload(contentType: Message['content_type'], payload: Json): Result<StoredPayload> {
  if (contentType === 'text/plain' && typeof payload !== 'string')
    return new Refusal('invalid_request', 'payload must be a string when content_type is text/plain', {
      field: 'payload',
    });
  const unfit = whyUnfit(payload);
  if (unfit !== undefined) return new Refusal('invalid_request', `payload ${unfit}`, { field: 'payload' });
  const encoded = { json: JSON.stringify(payload), canonical: canonicalJson(payload) };
  const bytes = utf8Bytes(encoded.json);
  if (bytes > limits.payloadBytesMax)
    return new Refusal(
      'payload_too_large',
      `payload is ${bytes} bytes as JSON; at most ${limits.payloadBytesMax}`,
      {
        field: 'payload',
        bytes,
      },
    );
  return encoded;
}

/** Walks without recursion, whatever the nesting: what is stored here can be written and read by every surface. */
function whyUnfit(payload: Json): string | undefined {
  const open: { value: Json; depth: number }[] = [{ value: payload, depth: 0 }];
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    const { value, depth } = one;
    // It would be stored as null.
    if (typeof value === 'number' && !Number.isFinite(value))
      return 'holds a number beyond IEEE doubles; send it as text';
    if (typeof value !== 'object' || value === null) continue;
    if (depth === limits.payloadDepthMax) return `is nested more than ${limits.payloadDepthMax} deep`;
    for (const inner of Object.values(value)) open.push({ value: inner, depth: depth + 1 });
  }
  return undefined;
}

/** What two sends under one idempotency key must agree in, canonical; how the call behaves is not content. */
export function contentOf(request: SendRequest, canonicalPayload: string): string {
  const { payload: _, idempotency_key: __, ...described } = contentFields(request);
  return `${canonicalJson(described as Json)}\n${canonicalPayload}`;
}

/** What describes the message, with the defaults of its optional choices, a flag only where it is set. */
export function contentFields(request: SendRequest) {
  const {
    quiet,
    fallback_to_principal: _,
    expected_generation: __,
    reply_wait_ms: ___,
    ...described
  } = request;
  const defaults = { target_kind: 'principal', content_type: 'text/plain', privacy: 'private' } as const;
  return { ...defaults, ...described, ...(quiet === true && { quiet }) };
}

/** Of the key under which a copy for the principal is stored; no caller's key begins so. */
export const fallbackPrefix = 'postbell-fallback:';

/** Refuses fields that do not go together. */
export function checkTogether(request: SendRequest): Refusal | undefined {
  const session = request.target_kind === 'session';
  if (session && request.intended_session !== undefined)
    return new Refusal('invalid_request', 'intended_session needs target_kind principal', {
      field: 'intended_session',
    });
  if (session && request.quiet)
    return new Refusal('invalid_request', 'quiet needs target_kind principal', { field: 'quiet' });
  if (!session && request.fallback_to_principal === true)
    return new Refusal('invalid_request', 'fallback_to_principal needs target_kind session', {
      field: 'fallback_to_principal',
    });
  if (!session && request.expected_generation !== undefined)
    return new Refusal('invalid_request', 'expected_generation needs target_kind session', {
      field: 'expected_generation',
    });
  if (request.peer !== undefined)
    for (const field of ['fallback_to_principal', 'expected_generation', 'reply_wait_ms'] as const)
      if (request[field] !== undefined && request[field] !== false)
        return new Refusal(
          'invalid_request',
          `${field} is for sessions of this machine; what goes to a peer is not waited for`,
          { field },
        );
  if (request.idempotency_key.startsWith(fallbackPrefix))
    return new Refusal('invalid_request', `idempotency_key may not begin with ${fallbackPrefix}`, {
      field: 'idempotency_key',
    });
  return undefined;
}

/** Whether waiting mail of this kind is worth a wake-up: neither progress, nor quiet, nor held by the loop guard. */
export function isAttentionWorthy(
  message: { status?: MessageStatus | null; quiet?: boolean | null },
  held: boolean,
): boolean {
  return message.status !== 'update' && !message.quiet && !held;
}
