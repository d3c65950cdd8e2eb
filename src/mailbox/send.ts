// Hop 2 of a message: a refusal with a code, or one durable transaction; only then is the sender answered, with
// what is known and no more.

import type { PeerSendAnswer } from '../peers/send.ts';
import type { NotifyAnswer } from '../ports/router.ts';
import type { NativeDelivery } from '../protocol/delivery.ts';
import { Fault, isRefusal, type Result } from '../protocol/errors.ts';
import { checkTogether, type Message } from '../protocol/message.ts';
import type { SendRequest } from '../protocol/requests.ts';
import type { Presence } from '../protocol/session.ts';
import type { DeliveryState } from '../protocol/states.ts';
import { presenceOf } from '../sessions/presence.ts';
import { type Draft, draft, type Stored, store } from './commit.ts';
import type { Caller, Desk } from './desk.ts';
import {
  earlierFallback,
  type Fallback,
  fallBack,
  fallbackOf,
  handOver,
  noCopy,
  type Refused,
  tellRouter,
} from './hand-over.ts';
import { noteProgress } from './progress.ts';
import { awaitReply, type Reply } from './reply.ts';
import { deliveryStateOf } from './state.ts';

export type SendAnswer = Message & {
  delivery_state: DeliveryState;
  recipient_presence?: Presence;
  /** With `peer`: how old that is, and who else is live there. */
  presence_age_ms?: number;
  live_alternative?: NonNullable<PeerSendAnswer['live_alternative']>;
  quieted?: NonNullable<NotifyAnswer['quieted']>;
  native_delivery?: NativeDelivery;
  fallback?: Fallback;
  reply?: Reply | null;
};

/**
 * Stores the message and tells the router. Faults of the store are thrown before anything was promised. `ended` stops
 * waiting for a reply.
 */
export async function send(
  desk: Desk,
  request: SendRequest,
  caller: Caller,
  ended?: AbortSignal,
): Promise<Result<SendAnswer>> {
  const unfit = checkTogether(request);
  if (unfit !== undefined) return unfit;
  const { peer } = request;
  if (peer !== undefined) {
    // Loaded for such mail alone.
    const { sendToPeer } = await import('../peers/send.ts');
    const sent = await sendToPeer(desk, { ...request, peer }, caller);
    if (!isRefusal(sent)) await noteProgress(desk, sent, caller);
    return sent;
  }
  const given = draft(desk, request, caller);
  if (isRefusal(given)) return given;
  const committed = await desk.store.write((tx) => commit(tx, desk, given, caller));
  if (isRefusal(committed)) return committed;
  desk.wake.touch();
  const reached = await reach(desk, request, given, committed);
  await noteProgress(desk, committed.message, caller);
  if (isRefusal(reached)) return reached;
  const answer = answerOf(desk, reached);
  if (request.reply_wait_ms === undefined) return answer;
  const reply = await replyTo(desk, answer, caller, request.reply_wait_ms, ended);
  // The wait may have been long: what is said is what is known at its end.
  return { ...answerOf(desk, reached), reply };
}

/** None where the store can no longer be asked: the send stands. */
async function replyTo(...[desk, sent, ...rest]: Parameters<typeof awaitReply>): Promise<Reply | null> {
  try {
    return await awaitReply(desk, sent, ...rest);
  } catch (error) {
    if (error instanceof Fault) return null;
    throw error;
  }
}

/** What the transaction left: the message, and where an earlier call fell back, the one that took its place. */
type Committed = Stored & { instead?: Message };

function commit(
  tx: Parameters<typeof store>[0],
  desk: Desk,
  given: Draft,
  caller: Caller,
): Result<Committed> {
  const stored = store(tx, desk, given, caller);
  if (isRefusal(stored)) return stored;
  const instead = earlierFallback(tx, given);
  return { ...stored, ...(instead !== undefined && { instead }) };
}

/** What became of telling the router of a message; `told` is undefined where it was not asked. */
interface Reached extends Stored {
  told?: (NotifyAnswer & { unasked?: true }) | Fault;
}

async function reach(
  desk: Desk,
  request: SendRequest,
  given: Draft,
  { message, held, instead }: Committed,
): Promise<Result<Reached>> {
  if (instead !== undefined) return { message: instead, held };
  if (message.target_kind === 'principal')
    return { message, held, told: await tellRouter(desk, message, false) };
  const answer = await handOver(desk, message, given, request.expected_generation);
  if (!isRefusal(answer)) return { message, held, told: answer };
  if (request.fallback_to_principal !== true || answer.code !== 'recipient_unavailable') return answer;
  return reachPrincipal(desk, { message, held, refusal: answer, draft: given });
}

async function reachPrincipal(desk: Desk, refused: Refused): Promise<Result<Reached>> {
  const copy = await storeCopy(desk, refused);
  if (isRefusal(copy)) return copy;
  desk.wake.touch();
  return { message: copy, held: refused.held, told: await tellRouter(desk, copy, false) };
}

/** A fault here comes after the commit: the answer is the refusal, which says what is kept. */
async function storeCopy(desk: Desk, refused: Refused): Promise<Result<Message>> {
  try {
    return await desk.store.write((tx) => fallBack(tx, desk, refused));
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    return noCopy(refused.refusal, `${error.code}, ${error.message}`);
  }
}

/** What is known besides that it is stored. */
function answerOf(desk: Desk, { message, held, told }: Reached): SendAnswer {
  const answer = told instanceof Fault ? undefined : told;
  const quieted = answer?.quieted !== 'taken_in' && held ? 'loop_guard' : answer?.quieted;
  const native = answer?.native_delivery;
  return {
    ...message,
    ...observe(desk, message, answer !== undefined && answer.unasked !== true),
    ...(quieted !== undefined && { quieted }),
    ...(native !== undefined && { native_delivery: native }),
  };
}

/** Where even that cannot be read, the answer says so by `not_checked`. */
function observe(
  desk: Desk,
  message: Message,
  reached: boolean,
): Pick<SendAnswer, 'delivery_state' | 'recipient_presence' | 'fallback'> {
  try {
    return desk.store.read((tx) => ({
      delivery_state: deliveryStateOf(tx, message.delivery_id),
      recipient_presence: reached ? presenceOf(tx, message, desk.clock.nowMs()) : 'not_checked',
      ...(message.intended_session !== undefined &&
        tx.fallbacks.byDelivery(message.delivery_id) !== undefined && {
          fallback: fallbackOf(tx, message, desk.clock.nowMs()),
        }),
    }));
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    return { delivery_state: 'receiver_stored', recipient_presence: 'not_checked' };
  }
}
