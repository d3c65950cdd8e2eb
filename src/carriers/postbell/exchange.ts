// One HTTP request to one relay, and its answer as JSON. No redirect is followed, nothing is read beyond a limit, and what does not
// come in time is no answer.

import { type LookupAddress, lookup } from 'node:dns';
import { setMaxListeners } from 'node:events';
import {
  type ClientRequest,
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingMessage,
} from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import type { Clock } from '../../ports/clock.ts';
import { RelayFailure } from '../../ports/relay.ts';
import { isPublicAddress } from './public-address.ts';

const connectMs = 10_000;
const answerBytesMax = 8_388_608;
const socketsMax = 64;

export interface Asked {
  method: string;
  /** With its query. */
  path: string;
  headers: Readonly<Record<string, string>>;
  body?: Uint8Array;
  /** For the whole answer, from the connection on. */
  answerMs: number;
  signal?: AbortSignal | undefined;
}

export interface Answered {
  status: number;
  value: unknown;
}

export interface Exchange {
  ask(asked: Asked): Promise<Answered>;
}

/** All addresses of a name. */
export type Resolve = (name: string, then: (error: Error | null, found: LookupAddress[]) => void) => void;

const bySystem: Resolve = (name, then) =>
  lookup(name, { all: true }, (error, found) => then(error, found ?? []));

/** The way to one relay. */
interface Line {
  origin: string;
  url: URL;
  secure: boolean;
  host: string;
  agent: HttpAgent;
  lookup: LookupFunction | undefined;
  clock: Clock;
}

/** @param where `anywhere` for relays that the operator listed; others must lie in public, by their very address */
export function exchangeWith(
  origin: string,
  where: 'anywhere' | 'public',
  clock: Clock,
  resolve: Resolve = bySystem,
): Exchange {
  const url = new URL(origin);
  const secure = url.protocol === 'https:';
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const agent = new (secure ? HttpsAgent : HttpAgent)({ keepAlive: true, maxSockets: socketsMax });
  const lookup = where === 'public' ? publicLookup(resolve) : undefined;
  const line: Line = { origin, url, secure, host, agent, lookup, clock };
  const refusal = whyNot(origin, where, secure, host);
  return {
    ask: (asked) => (refusal === undefined ? once(line, asked) : Promise.reject(refusal)),
  };
}

function begin({ secure, agent, host, url, lookup }: Line, asked: Asked): ClientRequest {
  return (secure ? httpsRequest : httpRequest)({
    agent,
    host,
    port: url.port === '' ? (secure ? 443 : 80) : Number(url.port),
    method: asked.method,
    path: asked.path,
    headers: { ...asked.headers, host: url.host },
    ...(lookup !== undefined && { lookup }),
    ...(asked.signal !== undefined && { signal: asked.signal }),
  });
}

function once(line: Line, asked: Asked): Promise<Answered> {
  const { origin, clock, secure } = line;
  return new Promise((resolve, reject) => {
    // One signal ends all that a loop has under way: more at once than the ten after which Node warns of a leak.
    if (asked.signal !== undefined) setMaxListeners(0, asked.signal);
    const call = begin(line, asked);
    let cancel = (): void => {};
    const fail = (failure: RelayFailure): void => {
      cancel();
      reject(failure);
      call.destroy();
    };
    const within = (ms: number, why: string): void => {
      cancel();
      cancel = clock.after(ms, () => fail(unreachable(origin, why)));
    };
    within(connectMs, `cannot be connected to within ${connectMs / 1_000} s`);
    const connected = (): void =>
      within(asked.answerMs, `gives no answer within ${asked.answerMs / 1_000} s`);
    call.on('socket', (socket) =>
      socket.connecting ? socket.once(secure ? 'secureConnect' : 'connect', connected) : connected(),
    );
    call.on('error', (error: NodeJS.ErrnoException) => fail(failureOf(origin, call, asked, error)));
    call.on('response', (response) =>
      readAnswer(response, origin, fail, (answered) => {
        cancel();
        resolve(answered);
      }),
    );
    if (asked.signal?.aborted) fail(unreachable(origin, 'was not waited for'));
    else call.end(asked.body);
  });
}

const unreachable = (origin: string, why: string, cause?: unknown): RelayFailure =>
  new RelayFailure('unreachable', origin, `the relay ${origin} ${why}`, { cause });

function failureOf(
  origin: string,
  call: ClientRequest,
  { signal }: Asked,
  error: NodeJS.ErrnoException,
): RelayFailure {
  const { code = '' } = error;
  if (call.reusedSocket && /^(?:ECONNRESET|EPIPE)$/.test(code)) return new ClosedMeanwhile(origin, error);
  if (signal?.aborted) return unreachable(origin, 'was not waited for');
  // A server that does not speak TLS, or no HTTP.
  return /^HPE_|^EPROTO$|WRONG_VERSION/.test(code)
    ? new RelayFailure('foreign', origin, `the relay ${origin} ${wordsOf(error)}`, { cause: error })
    : unreachable(origin, wordsOf(error), error);
}

function whyNot(
  origin: string,
  where: 'anywhere' | 'public',
  secure: boolean,
  host: string,
): RelayFailure | undefined {
  if (where === 'anywhere') return undefined;
  if (!secure)
    return new RelayFailure(
      'unreachable',
      origin,
      `the relay ${origin} is not asked: a relay that only a peer names must be https; where it is yours, list it in POSTBELL_RELAYS`,
    );
  return isIP(host) !== 0 && !isPublicAddress(host) ? notPublic(origin) : undefined;
}

const notPublic = (origin: string): RelayFailure =>
  new RelayFailure(
    'unreachable',
    origin,
    `the relay ${origin} is not asked: its address is not in public; where it is yours, list it in POSTBELL_RELAYS`,
  );

class NotPublic extends Error {}

/** A kept connection that the relay closed at that moment; it may have seen the request, or not. */
export class ClosedMeanwhile extends RelayFailure {
  constructor(origin: string, cause: unknown) {
    super('unreachable', origin, `the relay ${origin} broke the connection off`, { cause });
  }
}

/** Resolves to public addresses alone: what is looked up is what is connected to. A name that leads to any other leads nowhere. */
const publicLookup =
  (resolve: Resolve): LookupFunction =>
  (hostname, options, callback) => {
    resolve(hostname, (error, found) => {
      const [first] = found;
      if (error !== null) callback(error, '', 0);
      else if (first === undefined || !found.every(({ address }) => isPublicAddress(address)))
        callback(new NotPublic('not public'), '', 0);
      else if (options.all === true) callback(null, found);
      else callback(null, first.address, first.family);
    });
  };

/** Why no answer came, in words that hold no more than the code of the failure. */
function wordsOf(error: NodeJS.ErrnoException): string {
  if (error instanceof NotPublic)
    return 'is not asked: its address is not in public; where it is yours, list it in POSTBELL_RELAYS';
  const known: Readonly<Record<string, string>> = {
    ECONNREFUSED: 'refuses connections: is it running?',
    ENOTFOUND: 'has a name that is not known: is it spelled right?',
    EAI_AGAIN: 'has a name that cannot be looked up now: is this machine online?',
    ECONNRESET: 'broke the connection off',
    EHOSTUNREACH: 'cannot be reached from here',
    ENETUNREACH: 'cannot be reached from here',
    ETIMEDOUT: 'cannot be reached: the connection timed out',
    EPROTO: 'does not speak TLS, as https needs',
  };
  const { code = '' } = error;
  if (/WRONG_VERSION/.test(code)) return known.EPROTO as string;
  if (code.startsWith('HPE_')) return 'answers in something that is not HTTP';
  if (/CERT|SELF_SIGNED|ALTNAME|UNABLE_TO/.test(code))
    return `has a certificate that does not hold (${code})`;
  return known[code] ?? `cannot be reached (${/^[A-Z0-9_]{1,40}$/.test(code) ? code : error.name})`;
}

function readAnswer(
  response: IncomingMessage,
  origin: string,
  fail: (failure: RelayFailure) => void,
  done: (answered: Answered) => void,
): void {
  const { statusCode: status = 0, headers } = response;
  const foreign = (what: string): void =>
    fail(new RelayFailure('foreign', origin, `the relay ${origin} ${what}`, { status }));
  if (status >= 300 && status < 400) {
    foreign(`sends elsewhere (${status}); list the address of the relay itself`);
    return;
  }
  const type = headers['content-type']?.split(';')[0]?.trim().toLowerCase();
  if (type !== 'application/json') {
    foreign(
      `answers ${status} with ${type === undefined ? 'no type' : quotedType(type)}, which no Postbell relay does${askedOf(status)}`,
    );
    return;
  }
  const chunks: Buffer[] = [];
  let bytes = 0;
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > answerBytesMax)
      foreign(`answers with more than 8 MiB, which no Postbell relay does${askedOf(status)}`);
    else chunks.push(chunk);
  });
  response.on('error', () =>
    fail(new RelayFailure('unreachable', origin, `the relay ${origin} broke its answer off`)),
  );
  response.on('end', () => {
    if (!response.complete)
      return fail(new RelayFailure('unreachable', origin, `the relay ${origin} broke its answer off`));
    try {
      done({ status, value: JSON.parse(Buffer.concat(chunks).toString('utf8')) });
    } catch {
      foreign(`answers with text that is not JSON, which no Postbell relay does${askedOf(status)}`);
    }
  });
}

/** What to look at: a server error in other words than a relay's is mostly of a proxy before it. */
export const askedOf = (status: number): string =>
  status >= 500 ? ': does the relay behind that address run?' : ': is that its address?';

const quotedType = (type: string): string =>
  /^[\w.+-]{1,40}\/[\w.+-]{1,40}$/.test(type) ? type : 'another type';
