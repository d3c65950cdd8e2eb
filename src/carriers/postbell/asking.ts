// How a relay is asked: signed where it is about an own queue, by the relay's own clock, and what it refuses in plain words.

import { signRequest } from '../../crypto/http-signature.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Random } from '../../ports/random.ts';
import { RelayFailure, type Signer } from '../../ports/relay.ts';
import { isObject } from '../../protocol/json.ts';
import { type Answered, askedOf, ClosedMeanwhile, exchangeWith, type Resolve } from './exchange.ts';

const answerMs = 30_000;

export interface RelayClientOptions {
  origin: string;
  signer: Signer;
  clock: Clock;
  random: Random;
  /** `anywhere` for what the operator listed. */
  mayReach: 'anywhere' | 'public';
  /** How names are looked up; as the system does, unless told otherwise. */
  resolve?: Resolve;
}

export interface Call {
  method: 'GET' | 'PUT' | 'POST' | 'DELETE';
  path: string;
  query?: string;
  type?: 'application/json' | 'application/octet-stream';
  body?: Uint8Array;
  headers?: Readonly<Record<string, string>>;
  signed?: boolean;
  waitMs?: number;
  signal?: AbortSignal | undefined;
}

/** Asks; rejects with `RelayFailure`. */
export type Ask = (call: Call) => Promise<Record<string, unknown>>;

export interface Asker {
  ask: Ask;
  /** As `Relay` says it. */
  aheadMs(): number;
}

export function askerOf({ origin, signer, clock, random, mayReach, resolve }: RelayClientOptions): Asker {
  const exchange = exchangeWith(origin, mayReach, clock, resolve);
  const authority = new URL(origin).host;
  /** By how much this relay's clock is ahead of ours: for its own requests only, never for what is said of messages. */
  let aheadMs = 0;

  /** Each request may be made twice, signed anew: the relay forgets nothing by it, and takes nothing for another. */
  const once = (call: Call): Promise<Answered> =>
    attempt(call).catch((error: unknown) => {
      if (error instanceof ClosedMeanwhile) return attempt(call);
      throw error;
    });

  const attempt = (call: Call): Promise<Answered> => {
    const { method, path, query = '', body, type, headers = {}, signed = true, waitMs = 0, signal } = call;
    const proof = signed
      ? signRequest({
          method,
          authority,
          path,
          query,
          ...(body !== undefined && { body }),
          created: Math.floor((clock.nowMs() + aheadMs) / 1_000),
          nonce: random.bytes(16),
          signer,
        })
      : {};
    return exchange.ask({
      method,
      path: path + query,
      headers: {
        accept: 'application/json',
        ...headers,
        ...(type !== undefined && { 'content-type': type }),
        'content-length': String(body?.length ?? 0),
        ...(proof as Record<string, string>),
      },
      ...(body !== undefined && { body }),
      answerMs: answerMs + waitMs,
      signal,
    });
  };

  const ask: Ask = async (call) => {
    let answered = await once(call);
    const offMs = clockOff(answered, clock.nowMs());
    if (offMs !== undefined && call.signed !== false) {
      aheadMs = offMs;
      answered = await once(call);
    }
    return valueIn(origin, answered, aheadMs);
  };
  return { ask, aheadMs: () => aheadMs };
}

export const foreign = (origin: string, what: string): RelayFailure =>
  new RelayFailure(
    'foreign',
    origin,
    `the relay ${origin} ${what}, which a Postbell relay does: is that its address?`,
  );

/** How far the relay's clock is ahead, where that was what it refused. */
function clockOff({ status, value }: Answered, nowMs: number): number | undefined {
  if (status !== 401 || !isObject(value) || !isObject(value.error) || value.error.code !== 'clock')
    return undefined;
  const { now } = value.error;
  return typeof now === 'number' && Number.isFinite(now) ? now - nowMs : undefined;
}

function valueIn(origin: string, { status, value }: Answered, aheadMs: number): Record<string, unknown> {
  if (!isObject(value)) throw foreign(origin, 'does not answer with an object');
  if (status >= 200 && status < 300) return value;
  const error = isObject(value.error) ? value.error : undefined;
  const code = typeof error?.code === 'string' && /^[a-z_]{1,40}$/.test(error.code) ? error.code : undefined;
  if (code === undefined)
    throw new RelayFailure(
      'foreign',
      origin,
      `the relay ${origin} answers ${status} in words of no Postbell relay${askedOf(status)}`,
      { status },
    );
  const wait = error?.retry_after_ms;
  throw new RelayFailure('refused', origin, `the relay ${origin} ${refusedWords(code, aheadMs)}`, {
    status,
    code,
    ...(typeof wait === 'number' && wait > 0 && wait <= 86_400_000 && { retryAfterMs: wait }),
  });
}

/** What its refusals mean for whoever reads a line about them. */
function refusedWords(code: string, aheadMs: number): string {
  const words: Readonly<Record<string, string>> = {
    clock: `has another time: this machine's clock is about ${Math.round(Math.abs(aheadMs) / 1_000)} s ${aheadMs > 0 ? 'behind' : 'ahead'}; set the one that is wrong`,
    bad_signature:
      'does not accept the signature: is it listed by the address that it calls its own (--public-url)?',
    not_member: 'takes no queue of this identity: its operator admits members only',
    queue_unknown: 'does not know the queue: its owner has not registered there',
    queue_limit: 'takes no more queues of this identity',
    queue_full: 'has no room left in that queue until its owner drains it',
    relay_full: 'is full',
    too_large: 'takes no item so large',
    forbidden: 'says that the queue is of another identity',
    rate_limited: 'takes no more for the moment',
    sender_share: 'takes no more from this machine for that queue',
    store_unavailable: 'cannot use its store for the moment',
  };
  return words[code] ?? `says no (${code})`;
}
