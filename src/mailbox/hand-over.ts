// An exact session: success only on native acceptance, or where nothing needs handing over. Where the session refuses and
// the sender asked for it, the same message goes to its principal, meant for that session.

import type { SessionRow } from '../ports/presence.ts';
import type { NotifyAnswer } from '../ports/router.ts';
import type { Tx } from '../ports/store.ts';
import { envelopeOf, type UnavailableReason } from '../protocol/delivery.ts';
import { type ErrorCode, Fault, Refusal, type Result } from '../protocol/errors.ts';
import { utf8Bytes } from '../protocol/json.ts';
import { limits } from '../protocol/limits.ts';
import { fallbackPrefix, type Message } from '../protocol/message.ts';
import { nameable } from '../protocol/session.ts';
import { knownAnswer } from '../sessions/finish.ts';
import { checkQuota, type Draft, freshIds, put, type Stored } from './commit.ts';
import { type Desk, timestamp } from './desk.ts';
import { checkLoop } from './guard.ts';

/** The refused delivery behind a message that went to the principal instead. */
export interface Fallback {
  message_id: string;
  delivery_id: string;
  recipient: string;
  target_kind: 'session';
  reason: UnavailableReason | ErrorCode;
  /** Whether the session is live now. */
  intended_session_connected: boolean;
  note?: string;
}

/** What became of a hand-over; `unasked` where the store alone says so, and nothing is known of the session now. */
type Known = NotifyAnswer & { unasked?: true };

/** Tells the router and waits for the session's host. */
export async function handOver(
  desk: Desk,
  message: Message,
  given: Draft,
  expectedGeneration: number | undefined,
): Promise<Result<Known>> {
  const bytes = utf8Bytes(JSON.stringify(envelopeOf(message, given.payload)));
  if (bytes > limits.nativeEnvelopeBytesMax)
    return unlessKnown(
      desk,
      message,
      kept(
        message,
        'native_message_too_large',
        `the envelope is ${bytes} bytes; at most ${limits.nativeEnvelopeBytesMax} to an exact session`,
      ),
    );
  const answer = await tellRouter(desk, message, true, expectedGeneration);
  if (answer instanceof Fault) return unlessKnown(desk, message, kept(message, answer.code, answer.message));
  if (answer.delivered) return answer;
  const { reason = 'not_live' } = answer;
  if (reason === 'generation_changed')
    return kept(message, reason, 'the session is registered anew since you looked');
  if (reason === 'native_message_too_large')
    return kept(message, reason, 'the session\u2019s host takes no message so large');
  return kept(message, 'recipient_unavailable', unavailable(reason, answer.unclear), { reason });
}

/** What the session took or accepted before needs no router to be said. */
function unlessKnown(desk: Desk, { delivery_id }: Message, refusal: Refusal): Result<Known> {
  try {
    const known = desk.store.read((tx) => knownAnswer(tx, delivery_id));
    return known === undefined ? refusal : { ...known, unasked: true };
  } catch (error) {
    if (error instanceof Fault) return refusal;
    throw error;
  }
}

const unavailable = (reason: string, unclear: boolean | undefined): string => {
  if (reason === 'never_registered')
    return 'no session of that id ever registered in this project, so no principal of it is known (never_registered)';
  if (reason === 'expired') return 'its expires_at has passed; under a new key it can be sent anew (expired)';
  return unclear
    ? `it is not known whether the session was reached (${reason})`
    : `the session was not reached (${reason})`;
};

/** The router's answer, or why it gave none. Nothing that happens here undoes the send. */
export async function tellRouter(
  desk: Desk,
  { project, delivery_id }: Message,
  wait: boolean,
  expectedGeneration?: number,
): Promise<NotifyAnswer | Fault> {
  try {
    return await desk.router.notify({
      project,
      delivery_id,
      wait,
      ...(expectedGeneration !== undefined && { expected_generation: expectedGeneration }),
    });
  } catch (error) {
    if (error instanceof Fault) return error;
    throw error;
  }
}

/** A failure after the commit says what is kept. */
function kept(message: Message, code: ErrorCode, text: string, more: { reason?: string } = {}): Refusal {
  const { message_id, delivery_id, event_id } = message;
  return new Refusal(code, `${text}; the message is kept as ${message_id}`, {
    message_id,
    delivery_id,
    event_id,
    ...more,
  });
}

/** The message to the principal that an earlier call under this key ended with. */
export function earlierFallback(tx: Tx, { message, idempotency_key }: Draft): Message | undefined {
  if (message.target_kind !== 'session') return undefined;
  const key = fallbackPrefix + idempotency_key;
  const record = tx.messages.byIdempotencyKey(message.project, message.sender, key);
  return record && tx.messages.byId(record.message_id)?.message;
}

/** A stored message that its session did not get, and why. */
export interface Refused extends Stored {
  refusal: Refusal;
  draft: Draft;
}

/** Stores the copy for the principal that the session registered under; the refusal where there is none. */
export function fallBack(tx: Tx, desk: Desk, { message, held, refusal, draft }: Refused): Result<Message> {
  const earlier = earlierFallback(tx, draft);
  if (earlier !== undefined) return earlier;
  const session = tx.sessions.registered(message.project, tx.identity.chain(message.recipient));
  if (session === undefined) return refusal;
  if (!nameable(session.adapter_kind)) return noCopy(refusal, 'a session of its host cannot name itself');
  // Waiting for the host took time: what has expired or was made obsolete meanwhile would reach nobody.
  if (tx.messages.byDelivery(message.delivery_id)?.waiting !== true) return refusal;
  const copy = copyFor(desk, message, session);
  const unfit = checkLoop(tx, copy, desk.clock.nowMs()) ?? checkQuota(tx, desk, draft.payload_json);
  if (unfit !== undefined) return noCopy(refusal, unfit.message);
  put(
    tx,
    draft,
    { message: copy, held },
    fallbackPrefix + draft.idempotency_key,
    tx.messages.byId(message.message_id)?.root_id,
  );
  tx.fallbacks.insert({
    delivery_id: copy.delivery_id,
    refused_delivery_id: message.delivery_id,
    reason: String(refusal.details?.reason) as UnavailableReason,
  });
  return copy;
}

/** The refusal, where nothing went to the principal instead. */
export const noCopy = ({ code, message, details }: Refusal, why: string): Refusal =>
  new Refusal(code, `${message}; no copy for its principal: ${why}`, details);

function copyFor(desk: Desk, message: Message, session: SessionRow): Message {
  return {
    ...message,
    ...freshIds(desk),
    recipient: session.principal_id,
    target_kind: 'principal',
    intended_session: message.recipient,
    created_at: timestamp(desk),
  };
}

const note =
  'only that session can take this message in, when it next runs; if it has ended for good, send to the principal without intended_session';

/** What an answer says of the session delivery that was refused. */
export function fallbackOf(tx: Tx, copy: Message, nowMs: number): Fallback {
  const row = tx.fallbacks.byDelivery(copy.delivery_id);
  const refused = row && tx.messages.byDelivery(row.refused_delivery_id)?.message;
  if (row === undefined || refused === undefined)
    throw new Error('a fallback has the delivery it stands for');
  const ids = tx.identity.chain(refused.recipient);
  const connected = tx.sessions.live(copy.project, ids, nowMs) !== undefined;
  return {
    message_id: refused.message_id,
    delivery_id: refused.delivery_id,
    recipient: refused.recipient,
    target_kind: 'session',
    reason: row.reason,
    intended_session_connected: connected,
    ...(!connected && { note }),
  };
}
