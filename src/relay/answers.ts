// How the relay answers: JSON, and refusals by its own closed list of codes.

import { type RelayCode, relayStatus } from '../protocol/relay-http.ts';

/** Why a request is not done. */
export class Refused {
  readonly code: RelayCode;
  readonly message: string;
  /** The relay's clock, where the request was signed by another time. */
  readonly nowMs: number | undefined;
  /** Where what is left of the request is not worth reading. */
  readonly closes: boolean;

  constructor(code: RelayCode, message: string, more: { nowMs?: number; closes?: boolean } = {}) {
    this.code = code;
    this.message = message;
    this.nowMs = more.nowMs;
    this.closes = more.closes ?? false;
  }
}

/** When it may be worth trying again. */
const retryAfterMs: Partial<Record<RelayCode, number>> = {
  queue_limit: 3_600_000,
  queue_full: 30_000,
  relay_full: 60_000,
  store_unavailable: 5_000,
};

const headers = { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' };

export function answerWith(value: object, status = 200): Response {
  return new Response(JSON.stringify(value), { status, headers });
}

export function answerRefused({ code, message, nowMs, closes }: Refused): Response {
  const retry_after_ms = retryAfterMs[code];
  const error = {
    code,
    message,
    ...(retry_after_ms !== undefined && { retry_after_ms }),
    ...(nowMs !== undefined && { now: nowMs }),
  };
  return new Response(JSON.stringify({ error }), {
    status: relayStatus[code],
    headers: closes ? { ...headers, connection: 'close' } : headers,
  });
}
