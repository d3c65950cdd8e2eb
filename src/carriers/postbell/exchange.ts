// One HTTP request to one relay, and its answer as JSON. No redirect is followed, nothing is read beyond a limit, and what does not
// come in time is no answer.

import { lookup } from 'node:dns';
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

/** @param where `anywhere` for relays that the operator listed; others must lie in public, by their very address */
export function exchangeWith(origin: string, where: 'anywhere' | 'public', clock: Clock): Exchange {
  const url = new URL(origin);
  const secure = url.protocol === 'https:';
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const agent = new (secure ? HttpsAgent : HttpAgent)({ keepAlive: true, maxSockets: socketsMax });
  const send = secure ? httpsRequest : httpRequest;
  const unreachable = (why: string, cause?: unknown): RelayFailure =>
    new RelayFailure('unreachable', origin, `the relay ${origin} ${why}`, { cause });
  const refusal = whyNot(origin, where, secure, host);
  return {
    ask: (asked) =>
      new Promise((resolve, reject) => {
        if (refusal !== undefined) return reject(refusal);
        let cancel = (): void => {};
        const end = (settle: () => void): void => {
          cancel();
          settle();
        };
        const fail = (failure: RelayFailure): void =>
          end(() => {
            reject(failure);
            call.destroy();
          });
        const call: ClientRequest = send({
          agent,
          host,
          port: url.port === '' ? (secure ? 443 : 80) : Number(url.port),
          method: asked.method,
          path: asked.path,
          headers: { ...asked.headers, host: url.host },
          ...(where === 'public' && { lookup: publicLookup }),
          ...(asked.signal !== undefined && { signal: asked.signal }),
        });
        const within = (ms: number, why: string): void => {
          cancel();
          cancel = clock.after(ms, () => fail(unreachable(why)));
        };
        within(connectMs, `cannot be connected to within ${connectMs / 1_000} s`);
        const connected = (): void =>
          within(asked.answerMs, `gives no answer within ${asked.answerMs / 1_000} s`);
        call.on('socket', (socket) =>
          socket.connecting ? socket.once(secure ? 'secureConnect' : 'connect', connected) : connected(),
        );
        call.on('error', (error) =>
          fail(
            asked.signal?.aborted ? unreachable('was not waited for') : unreachable(wordsOf(error), error),
          ),
        );
        call.on('response', (response) => {
          readAnswer(
            response,
            origin,
            (failure) => fail(failure),
            (answered) => end(() => resolve(answered)),
          );
        });
        call.end(asked.body);
      }),
  };
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
      `the relay ${origin} is not asked: a relay that a peer names must be https`,
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

/** Resolves to public addresses alone: what is looked up is what is connected to. */
const publicLookup: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (error, addresses) => {
    if (error !== null) return callback(error, '', 0);
    const open = addresses.filter(({ address }) => isPublicAddress(address));
    const [first] = open;
    if (first === undefined) return callback(new NotPublic('not public'), '', 0);
    if (options.all === true) (callback as unknown as (error: null, all: typeof open) => void)(null, open);
    else callback(null, first.address, first.family);
  });
};

/** Why no answer came, in words that hold no more than the code of the failure. */
function wordsOf(error: Error & { code?: string }): string {
  if (error instanceof NotPublic)
    return 'is not asked: its address is not in public; where it is yours, list it in POSTBELL_RELAYS';
  const known: Readonly<Record<string, string>> = {
    ECONNREFUSED: 'refuses connections: is it running?',
    ENOTFOUND: 'has a name that is not known',
    EAI_AGAIN: 'has a name that cannot be looked up now',
    ECONNRESET: 'broke the connection off',
    EHOSTUNREACH: 'cannot be reached from here',
    ENETUNREACH: 'cannot be reached from here',
    ETIMEDOUT: 'cannot be reached: the connection timed out',
    EPROTO: 'does not speak TLS as https needs',
    HPE_INVALID_CONSTANT: 'answers in something that is not HTTP',
  };
  const { code = '' } = error;
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
  if (status >= 300 && status < 400)
    return foreign(`sends elsewhere (${status}); list the address of the relay itself`);
  const type = headers['content-type']?.split(';')[0]?.trim().toLowerCase();
  if (type !== 'application/json')
    return foreign(
      `answers ${status} with ${type === undefined ? 'no type' : quotedType(type)}, which no Postbell relay does`,
    );
  const chunks: Buffer[] = [];
  let bytes = 0;
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > answerBytesMax) foreign('answers with more than 8 MiB, which no Postbell relay does');
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
      foreign('answers with text that is not JSON, which no Postbell relay does');
    }
  });
}

const quotedType = (type: string): string =>
  /^[\w.+-]{1,40}\/[\w.+-]{1,40}$/.test(type) ? type : 'another type';
