// Hop 2 of a message: a refusal with a code, or one durable transaction; only then is the sender answered, with
// what is known and no more.

import { sha256Hex } from '../crypto/hash.ts';
import type { NotifyAnswer } from '../ports/router.ts';
import type { NativeDelivery } from '../protocol/delivery.ts';
import { envelopeOf } from '../protocol/delivery.ts';
import { type ErrorCode, Fault, isRefusal, Refusal, type Result } from '../protocol/errors.ts';
import { type Json, utf8Bytes } from '../protocol/json.ts';
import { limits } from '../protocol/limits.ts';
import { checkTogether, contentFields, contentOf, type Message, readPayload } from '../protocol/message.ts';
import type { SendRequest } from '../protocol/requests.ts';
import type { Presence } from '../protocol/session.ts';
import type { DeliveryState } from '../protocol/states.ts';
import { presenceOf } from '../sessions/presence.ts';
import { type Caller, type Desk, newId, timestamp } from './desk.ts';
import { deliveryStateOf } from './state.ts';

export type SendAnswer = Message & {
  delivery_state: DeliveryState;
  recipient_presence?: Presence;
  quieted?: NonNullable<NotifyAnswer['quieted']>;
  native_delivery?: NativeDelivery;
};

/** Stores the message and tells the router. Faults of the store are thrown before anything was promised. */
export async function send(desk: Desk, request: SendRequest, caller: Caller): Promise<Result<SendAnswer>> {
  const unfit = checkTogether(request);
  if (unfit !== undefined) return unfit;
  const stored = await commit(desk, request, caller);
  if (isRefusal(stored)) return stored;
  desk.wake.touch();
  return stored.target_kind === 'session'
    ? await handOver(desk, stored, request.payload)
    : answerOf(desk, stored, await tellRouter(desk, stored, false));
}

/** One transaction: message, delivery, event, idempotency record; or the message that the key already names. */
async function commit(desk: Desk, request: SendRequest, caller: Caller): Promise<Result<Message>> {
  const given = contentFields(request);
  const payload = readPayload(given.content_type, request.payload);
  if (isRefusal(payload)) return payload;
  const content_sha256 = sha256Hex(contentOf(request, payload.canonical));
  const payload_sha256 = sha256Hex(payload.canonical);
  const { payload: _, idempotency_key, ...fields } = given;
  const message: Message = {
    message_id: newId(desk, 'msg'),
    delivery_id: newId(desk, 'dlv'),
    event_id: newId(desk, 'evt'),
    ...fields,
    created_at: timestamp(desk),
    provenance: {
      transport: caller.transport,
      source_host: caller.source_host,
      ...(caller.session !== undefined && { session: caller.session }),
    },
  };
  return desk.store.write((tx) => {
    const earlier = tx.messages.byIdempotencyKey(given.project, given.sender, idempotency_key);
    if (earlier === undefined) {
      tx.messages.insert({
        message,
        held: false,
        idempotency_key,
        content_sha256,
        payload: payload.json,
        payload_sha256,
      });
      return message;
    }
    if (earlier.content_sha256 !== content_sha256)
      return new Refusal('idempotency_conflict', 'this idempotency_key was used for other content', {
        field: 'idempotency_key',
        message_id: earlier.message_id,
      });
    return tx.messages.byId(earlier.message_id)?.message as Message;
  });
}

/** The router's answer, or why it gave none. Nothing that happens here undoes the send. */
async function tellRouter(desk: Desk, message: Message, wait: boolean): Promise<NotifyAnswer | Fault> {
  const { project, delivery_id } = message;
  try {
    return await desk.router.notify({ project, delivery_id, wait });
  } catch (error) {
    if (error instanceof Fault) return error;
    throw error;
  }
}

/** An exact session: success only on native acceptance, or where nothing needs handing over. */
async function handOver(desk: Desk, message: Message, payload: Json): Promise<Result<SendAnswer>> {
  const bytes = utf8Bytes(JSON.stringify(envelopeOf(message, payload)));
  if (bytes > limits.nativeEnvelopeBytesMax)
    return kept(
      message,
      'native_message_too_large',
      `the envelope is ${bytes} bytes; at most ${limits.nativeEnvelopeBytesMax} to an exact session`,
    );
  const answer = await tellRouter(desk, message, true);
  if (answer instanceof Fault) return kept(message, answer.code, answer.message);
  if (!answer.delivered) {
    const reason = answer.reason ?? 'not_live';
    if (reason === 'generation_changed' || reason === 'native_message_too_large')
      return kept(message, reason, `the session was not handed it (${reason})`);
    return kept(message, 'recipient_unavailable', `the session was not reached (${reason})`, { reason });
  }
  return answerOf(desk, message, answer);
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

/** What is known besides that it is stored; where even that cannot be read, the answer says so by `not_checked`. */
function answerOf(desk: Desk, message: Message, told: NotifyAnswer | Fault): SendAnswer {
  const reached = !(told instanceof Fault);
  const native = reached ? told.native_delivery : undefined;
  const quieted = reached ? told.quieted : undefined;
  return {
    ...message,
    ...observe(desk, message, reached),
    ...(quieted !== undefined && { quieted }),
    ...(native !== undefined && { native_delivery: native }),
  };
}

function observe(
  desk: Desk,
  message: Message,
  reached: boolean,
): Pick<SendAnswer, 'delivery_state' | 'recipient_presence'> {
  try {
    return desk.store.read((tx) => ({
      delivery_state: deliveryStateOf(tx, message.delivery_id),
      recipient_presence: reached ? presenceOf(tx, message, desk.clock.nowMs()) : 'not_checked',
    }));
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    return { delivery_state: 'receiver_stored', recipient_presence: 'not_checked' };
  }
}
