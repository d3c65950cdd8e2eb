// A relay of Postbell's own kind, over HTTP (relay.md, section 2). Requests about own queues are signed by the identity, posts by nobody.

import { signRequest } from '../../crypto/http-signature.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Random } from '../../ports/random.ts';
import {
  type LeasedItem,
  type QueuePresence,
  type Relay,
  RelayFailure,
  type Signer,
} from '../../ports/relay.ts';
import { bytesOfBase64url } from '../../protocol/base64url.ts';
import { isObject } from '../../protocol/json.ts';
import { type Answered, exchangeWith } from './exchange.ts';

const answerMs = 30_000;

export interface RelayClientOptions {
  origin: string;
  signer: Signer;
  clock: Clock;
  random: Random;
  /** `anywhere` for what the operator listed. */
  mayReach: 'anywhere' | 'public';
}

interface Call {
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

export function relayClient({ origin, signer, clock, random, mayReach }: RelayClientOptions): Relay {
  const exchange = exchangeWith(origin, mayReach, clock);
  const authority = new URL(origin).host;
  /** By how much this relay's clock is ahead of ours: for its own requests only, never for what is said of messages. */
  let aheadMs = 0;

  const once = (call: Call): Promise<Answered> => {
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

  const ask = async (call: Call): Promise<Record<string, unknown>> => {
    let answered = await once(call);
    const offMs = clockOff(answered, clock.nowMs());
    if (offMs !== undefined && call.signed !== false) {
      aheadMs = offMs;
      answered = await once(call);
    }
    return valueOf(origin, answered, aheadMs);
  };

  const json = (value: object) => ({
    type: 'application/json' as const,
    body: Buffer.from(JSON.stringify(value)),
  });
  return {
    origin,
    describe: async (signal) =>
      readDescription(origin, await ask({ method: 'GET', path: '/v1/relay', signed: false, signal })),
    register: async (queue, { door }, signal) => {
      const value = await ask({
        method: 'PUT',
        path: `/v1/queues/${queue}`,
        ...json(door ? { door } : {}),
        signal,
      });
      return { created: value.created === true };
    },
    close: async (queue, { purge }, signal) => {
      await ask({ method: 'DELETE', path: `/v1/queues/${queue}`, query: purge ? '?purge=1' : '', signal });
    },
    post: async (queue, { id, body, ttl_s }, signal) => {
      const headers = { 'postbell-item': id, 'postbell-ttl': String(ttl_s) };
      const type = 'application/octet-stream';
      const value = await ask({
        method: 'POST',
        path: `/v1/queues/${queue}/items`,
        type,
        body,
        headers,
        signed: false,
        signal,
      });
      if (value.accepted !== true) throw foreign(origin, 'does not say that it took the item');
      return { duplicate: value.duplicate === true };
    },
    poll: async (queue, { wait_ms, max }, signal) => {
      const query = `?wait_ms=${wait_ms}&max=${max}`;
      const value = await ask({
        method: 'GET',
        path: `/v1/queues/${queue}/items`,
        query,
        waitMs: wait_ms,
        signal,
      });
      return { items: readItems(origin, value.items), more: value.more === true };
    },
    settle: async (queue, what, signal) => {
      const { settled, unknown } = await ask({
        method: 'POST',
        path: `/v1/queues/${queue}/settle`,
        ...json(what),
        signal,
      });
      return { settled: Number(settled) || 0, unknown: Number(unknown) || 0 };
    },
    putCard: async (queue, card, signal) => {
      const type = 'application/octet-stream';
      await ask({ method: 'PUT', path: `/v1/queues/${queue}/card`, type, body: card, signal });
    },
    card: async (queue, signal) => {
      try {
        return readPresence(
          origin,
          await ask({ method: 'GET', path: `/v1/queues/${queue}/card`, signed: false, signal }),
        );
      } catch (error) {
        if (error instanceof RelayFailure && error.kind === 'refused' && error.status === 404)
          return undefined;
        throw error;
      }
    },
  };
}

const foreign = (origin: string, what: string): RelayFailure =>
  new RelayFailure('foreign', origin, `the relay ${origin} ${what}, which a Postbell relay does`);

/** How far the relay's clock is ahead, where that was what it refused. */
function clockOff({ status, value }: Answered, nowMs: number): number | undefined {
  if (status !== 401 || !isObject(value) || !isObject(value.error) || value.error.code !== 'clock')
    return undefined;
  const { now } = value.error;
  return typeof now === 'number' && Number.isFinite(now) ? now - nowMs : undefined;
}

function valueOf(origin: string, { status, value }: Answered, aheadMs: number): Record<string, unknown> {
  if (!isObject(value)) throw foreign(origin, 'does not answer with an object');
  if (status >= 200 && status < 300) return value;
  const error = isObject(value.error) ? value.error : undefined;
  const code = typeof error?.code === 'string' && /^[a-z_]{1,40}$/.test(error.code) ? error.code : undefined;
  if (code === undefined)
    throw new RelayFailure(
      'foreign',
      origin,
      `the relay ${origin} answers ${status} in words of no Postbell relay`,
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
    clock: `has another time than this machine: by about ${Math.round(Math.abs(aheadMs) / 1_000)} s; set the clock`,
    bad_signature:
      'does not accept the signature: is it listed by the address that it calls its own (--public-url)?',
    not_member: 'takes no queue of this identity: its operator admits members only',
    queue_unknown: 'does not know the queue: its owner has not registered there',
    queue_limit: 'takes no more queues of this identity',
    queue_full: 'has no room left in that queue until its owner drains it',
    relay_full: 'is full',
    too_large: 'takes no item so large',
    rate_limited: 'takes no more for the moment',
    sender_share: 'takes no more from this machine for that queue',
    store_unavailable: 'cannot use its store for the moment',
  };
  return words[code] ?? `says no (${code})`;
}

function readDescription(origin: string, { id, protocols, now }: Record<string, unknown>) {
  const fits =
    typeof id === 'string' &&
    Array.isArray(protocols) &&
    protocols.every((one) => typeof one === 'string') &&
    typeof now === 'number';
  if (!fits) throw foreign(origin, 'does not describe itself');
  return { id, protocols: protocols as string[], now_ms: now };
}

function readItems(origin: string, items: unknown): LeasedItem[] {
  if (!Array.isArray(items)) throw foreign(origin, 'lists no items');
  return items.map((one: unknown) => {
    const item = isObject(one) ? one : {};
    const { token, item: id, age_ms, attempt, body } = item;
    const bytes = typeof body === 'string' ? bytesOfBase64url(body) : undefined;
    if (typeof token !== 'string' || typeof id !== 'string' || bytes === undefined)
      throw foreign(origin, 'lists items of another shape');
    return { token, id, age_ms: Number(age_ms) || 0, attempt: Number(attempt) || 1, body: bytes };
  });
}

function readPresence(origin: string, { age_ms, gone, card }: Record<string, unknown>): QueuePresence {
  const bytes = typeof card === 'string' ? bytesOfBase64url(card) : undefined;
  const fits =
    typeof age_ms === 'number' &&
    age_ms >= 0 &&
    typeof gone === 'boolean' &&
    (card === null || bytes !== undefined);
  if (!fits) throw foreign(origin, 'does not say how old its word is');
  return { age_ms, gone, card: bytes };
}
