// What is said when a relay does not do it: one line that names the relay, what came of it, and what helps.

import { RelayFailure } from '../../ports/relay.ts';
import { isObject } from '../../protocol/json.ts';
import type { Got, NoAnswer } from './exchange.ts';
import { notPublic } from './reach.ts';

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there; is it running?',
  ECONNRESET: 'the connection was closed without an answer',
  ENOTFOUND: 'there is no such host; is the name right?',
  EAI_AGAIN: 'its name cannot be looked up now; is this machine online?',
  EHOSTUNREACH: 'there is no way to that host',
  ENETUNREACH: 'there is no way to that network; is this machine online?',
  ETIMEDOUT: 'the connection was lost',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is signed by itself alone',
  SELF_SIGNED_CERT_IN_CHAIN: 'its certificate comes from an authority that is not known here',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate comes from an authority that is not known here',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name',
  connect: 'no connection within 10 s',
  slow: 'no answer in time',
  broken: 'the answer broke off',
  aborted: 'the call was given up here',
};

export function unanswered(origin: string, { reason, cause }: NoAnswer): RelayFailure {
  if (reason === notPublic)
    return new RelayFailure(
      'refused',
      origin,
      `${origin} was not asked: a relay that others name must be https at a public address; list it in POSTBELL_RELAYS if it is yours`,
      { cause },
    );
  if (reason === 'long')
    return new RelayFailure('foreign', origin, `${origin} answers more than any relay does; is it one?`, {
      cause,
    });
  // A server that does not speak TLS, or no HTTP.
  const isForeign = /^HPE_|^EPROTO$|WRONG_VERSION/.test(reason);
  const text = isForeign
    ? 'what answers there speaks another protocol'
    : (reasons[reason] ?? `it cannot be reached (${reason})`);
  return new RelayFailure(isForeign ? 'foreign' : 'unreachable', origin, `${origin}: ${text}`, { cause });
}

const foreign = (origin: string, text: string, status: number): RelayFailure =>
  new RelayFailure(
    'foreign',
    origin,
    `${origin} is no Postbell relay, or something stands before it: ${text}`,
    { status },
  );

/** An answer that no relay gives. */
export function misshapen(origin: string, status: number): RelayFailure {
  return foreign(origin, `its answer (HTTP ${status}) has not the form of one`, status);
}

/** A JSON object; throws RelayFailure for anything else. */
export function objectOf(origin: string, { status, contentType, body }: Got): Record<string, unknown> {
  if (status >= 300 && status < 400)
    throw foreign(
      origin,
      `it sends elsewhere (HTTP ${status}), which is not followed; list the address that answers itself`,
      status,
    );
  const type = contentType.split(';')[0]?.trim().toLowerCase();
  if (type !== 'application/json')
    throw foreign(origin, `it answers ${named(type)} (HTTP ${status})`, status);
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
    if (isObject(value)) return value;
  } catch {
    throw foreign(origin, `its answer (HTTP ${status}) is not JSON`, status);
  }
  throw misshapen(origin, status);
}

/** A content type is said only where it looks like one. */
const named = (type: string | undefined): string =>
  type === 'text/html'
    ? 'a web page'
    : /^[a-z0-9.+-]{1,40}\/[a-z0-9.+-]{1,60}$/.test(type ?? '')
      ? (type as string)
      : 'nothing of a known kind';

export interface Said {
  code: string;
  retryAfterMs: number | undefined;
  /** The relay's clock, with the code `clock`. */
  nowMs: number | undefined;
}

/** The relay's own words in a refusal; throws RelayFailure where there are none. */
export function refusalOf(origin: string, status: number, answer: Record<string, unknown>): Said {
  const { code, retry_after_ms, now } = isObject(answer.error) ? answer.error : {};
  if (typeof code !== 'string' || !/^[a-z_]{1,40}$/.test(code)) throw misshapen(origin, status);
  const number = (value: unknown): number | undefined =>
    Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined;
  return { code, retryAfterMs: number(retry_after_ms), nowMs: number(now) };
}

const words: Readonly<Record<string, string>> = {
  queue_unknown: 'it does not know that queue; its owner has not registered it, or not for a month',
  queue_full: 'the queue is full until its owner reads',
  queue_limit: 'this identity has as many queues there as it may',
  not_member: 'it serves listed identities alone; its operator can list this one',
  sender_share: 'this sender has as many items waiting in that queue as it may',
  rate_limited: 'too many requests; it asks for a pause',
  relay_full: 'it has no room left',
  store_unavailable: 'its store does not work now; its operator finds the reason in its log',
  too_large: 'that is more than it takes',
  forbidden: 'that queue belongs to another identity',
  bad_signature:
    'it does not accept the signature; is it listed by the very address that its operator gives as --public-url?',
};

export function refused(origin: string, status: number, said: Said, offMs?: number): RelayFailure {
  const { code, retryAfterMs } = said;
  const text = code === 'clock' ? clockText(offMs) : words[code];
  const message = `${origin} refuses (${code})${text === undefined ? '' : `: ${text}`}`;
  return new RelayFailure('refused', origin, message, {
    status,
    code,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  });
}

/** @param offMs how far the relay's clock is ahead of ours */
function clockText(offMs: number | undefined): string {
  if (offMs === undefined) return 'the clocks differ';
  const seconds = Math.round(Math.abs(offMs) / 1_000);
  return `this machine's clock is ${seconds} s ${offMs > 0 ? 'behind' : 'ahead of'} the relay's; set the clock that is wrong`;
}
