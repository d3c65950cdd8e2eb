// The HTTP interface of a relay (docs/spec/relay.md, section 2): forms, then the proof of the key, then the store.

import type { HttpBindings } from '@hono/node-server';
import { type Context, Hono } from 'hono';
import type { Clock } from '../ports/clock.ts';
import type { QueueRefusal, QueueStore } from '../ports/relay-queue.ts';
import { isQueue, keyOfQueue, relayLimits, relayProtocols, relayQuotas } from '../protocol/relay-http.ts';
import { answerRefused, answerWith, Refused } from './answers.ts';
import { readBody } from './bodies.ts';
import type { Polls } from './polls.ts';
import type { AskedRequest, Gate } from './proof.ts';
import { doorOf, isPath, itemOf, mediaType, numberOf, objectOf, settlementOf } from './requests.ts';

export interface RelayParts {
  store: QueueStore;
  clock: Clock;
  gate: Gate;
  polls: Polls;
  /** What kept a request from being answered; it tells no more than 503. */
  failed(error: unknown): void;
  /** Whether connections are to be closed with their answer. */
  ending(): boolean;
}

type Asked = Context<{ Bindings: HttpBindings }>;
type Answer = Response | Refused;

export function relayApp(parts: RelayParts): Hono<{ Bindings: HttpBindings }> {
  const app = new Hono<{ Bindings: HttpBindings }>();
  const refuse = (refused: Refused): Response => answerRefused(refused);
  app.use(async (c, next) => {
    const { url = '' } = c.env.incoming;
    if (c.req.header('origin') !== undefined)
      return refuse(new Refused('forbidden', 'a relay is no place for browsers'));
    if (!isPath(url.split('?', 1)[0] as string))
      return refuse(url.startsWith('/v1/') ? malformed() : nowhere());
    if (c.req.method === 'HEAD') return refuse(notAllowed());
    await next();
    if (parts.ending()) c.res.headers.set('connection', 'close');
    return undefined;
  });
  for (const [path, methods] of Object.entries(routes(parts))) {
    for (const [method, handler] of Object.entries(methods))
      app.on(method, path, async (c) => {
        const answer = await handler(c);
        return answer instanceof Refused ? refuse(answer) : answer;
      });
    app.all(path, () => refuse(notAllowed()));
  }
  app.notFound(() => refuse(nowhere()));
  app.onError((error) => {
    parts.failed(error);
    return refuse(new Refused('store_unavailable', 'the relay cannot do it now'));
  });
  return app;
}

const notAllowed = (): Refused => new Refused('method_not_allowed', 'not by this method');
const malformed = (): Refused => new Refused('bad_request', 'no path of a relay looks so');
const nowhere = (): Refused => new Refused('not_found', 'there is nothing here');
const noQueue = (): Refused => new Refused('not_found', 'there is no such queue');

type Handler = (c: Asked) => Answer | Promise<Answer>;

function routes(parts: RelayParts): Record<string, Record<string, Handler>> {
  const { store, clock } = parts;
  return {
    '/v1/relay': { GET: () => answerWith(description(store.id, clock.nowMs())) },
    '/v1/queues/:queue': { PUT: (c) => register(parts, c), DELETE: (c) => remove(parts, c) },
    '/v1/queues/:queue/items': { POST: (c) => post(parts, c), GET: (c) => poll(parts, c) },
    '/v1/queues/:queue/settle': { POST: (c) => settle(parts, c) },
    '/v1/queues/:queue/card': { PUT: (c) => putCard(parts, c), GET: (c) => card(parts, c) },
  };
}

function description(id: string, now: number): object {
  const { itemBytesMax, cardBytesMax, pollWaitMsMax, pollCountMax, settleCountMax, ttlSecondsMax } =
    relayLimits;
  const { queue, door, queuesOfKeyMax } = relayQuotas;
  const limits = {
    item_bytes: itemBytesMax,
    card_bytes: cardBytesMax,
    ttl_s: ttlSecondsMax,
    wait_ms: pollWaitMsMax,
    poll_items: pollCountMax,
    settle_items: settleCountMax,
    queues_of_key: queuesOfKeyMax,
    queue_items: queue.itemsMax,
    queue_bytes: queue.bytesMax,
    door_items: door.itemsMax,
    door_bytes: door.bytesMax,
  };
  return { id, protocols: relayProtocols, now, limits, posting: 'open', directory: false };
}

function queueOf(c: Asked): string | Refused {
  const queue = c.req.param('queue');
  return isQueue(queue) ? queue : new Refused('bad_request', 'that is no name of a queue');
}

/** Proves that the owner of the queue asks. */
function byOwner(
  { gate }: RelayParts,
  c: Asked,
  queue: string,
  body: Uint8Array = nothing,
): Refused | undefined {
  return gate.check(requestOf(c, body), keyOfQueue(queue));
}

const nothing: Uint8Array = new Uint8Array();

function requestOf(c: Asked, body: Uint8Array): AskedRequest {
  const { method = '', url = '', headers } = c.env.incoming;
  const [path = '', ...query] = url.split('?');
  const header = (name: string): string | undefined => {
    const value = headers[name];
    return Array.isArray(value) ? value.join(', ') : value;
  };
  return { method, path, query: query.length === 0 ? '' : `?${query.join('?')}`, header, body };
}

const queryOf = (c: Asked): URLSearchParams => new URLSearchParams(requestOf(c, nothing).query.slice(1));

async function bodyOf(
  { clock }: RelayParts,
  c: Asked,
  kind: { type: string; bytesMax: number; mayBeEmpty?: boolean },
): Promise<Uint8Array | Refused> {
  const { headers } = c.env.incoming;
  const wrongType = new Refused('unsupported_media_type', `the body is ${kind.type}`, { closes: true });
  if (headers['content-encoding'] !== undefined) return wrongType;
  const type = mediaType(headers['content-type']);
  if (type !== kind.type && (type !== undefined || !kind.mayBeEmpty)) return wrongType;
  const body = await readBody(c.env.incoming, kind.bytesMax, clock);
  return !(body instanceof Refused) && body.length > 0 && type === undefined ? wrongType : body;
}

const json = { type: 'application/json', bytesMax: relayLimits.jsonBytesMax };
const bytes = (bytesMax: number) => ({ type: 'application/octet-stream', bytesMax });

async function register(parts: RelayParts, c: Asked): Promise<Answer> {
  const queue = queueOf(c);
  if (queue instanceof Refused) return queue;
  const body = await bodyOf(parts, c, { ...json, mayBeEmpty: true });
  if (body instanceof Refused) return body;
  const refusal = byOwner(parts, c, queue, body);
  if (refusal !== undefined) return refusal;
  const given = objectOf(body);
  const door = given instanceof Refused ? given : doorOf(given);
  if (door instanceof Refused) return door;
  const done = await parts.store.register(queue, { door });
  return typeof done === 'string' ? full(done) : answerWith(done);
}

async function remove(parts: RelayParts, c: Asked): Promise<Answer> {
  const queue = queueOf(c);
  if (queue instanceof Refused) return queue;
  const purge = numberOf(queryOf(c), 'purge', { least: 0, most: 1, without: 0 });
  if (purge instanceof Refused) return purge;
  const body = await readBody(c.env.incoming, 0, parts.clock);
  if (body instanceof Refused) return body;
  const refusal = byOwner(parts, c, queue);
  if (refusal !== undefined) return refusal;
  const found = await parts.store.remove(queue, { purge: purge === 1 });
  return found ? answerWith({ gone: true }) : noQueue();
}

async function post(parts: RelayParts, c: Asked): Promise<Answer> {
  const queue = queueOf(c);
  if (queue instanceof Refused) return queue;
  const item = itemOf((name) => c.req.header(name));
  if (item instanceof Refused) return item;
  const body = await bodyOf(parts, c, bytes(relayLimits.itemBytesMax));
  if (body instanceof Refused) return body;
  if (body.length === 0) return new Refused('bad_item', 'the item is empty');
  const signed = c.req.header('signature') !== undefined || c.req.header('signature-input') !== undefined;
  const refusal = signed ? parts.gate.check(requestOf(c, body), undefined) : undefined;
  if (refusal !== undefined) return refusal;
  const outcome = await parts.store.post(queue, { ...item, body });
  if (outcome === 'accepted') return answerWith({ accepted: true }, 202);
  if (outcome === 'duplicate') return answerWith({ accepted: true, duplicate: true });
  return outcome === 'queue_unknown' ? new Refused('queue_unknown', 'there is no such queue') : full(outcome);
}

async function poll(parts: RelayParts, c: Asked): Promise<Answer> {
  const queue = queueOf(c);
  if (queue instanceof Refused) return queue;
  const query = queryOf(c);
  const { pollWaitMsMax, pollWaitMsDefault, pollCountMax, pollCountDefault } = relayLimits;
  const waitMs = numberOf(query, 'wait_ms', { least: 0, most: pollWaitMsMax, without: pollWaitMsDefault });
  if (waitMs instanceof Refused) return waitMs;
  const countMax = numberOf(query, 'max', { least: 1, most: pollCountMax, without: pollCountDefault });
  if (countMax instanceof Refused) return countMax;
  const refusal = byOwner(parts, c, queue);
  if (refusal !== undefined) return refusal;
  if (!(await parts.store.drain(queue))) return noQueue();
  const { outgoing } = c.env;
  const { items, more } = await parts.polls.poll(queue, { waitMs, countMax }, (end) =>
    outgoing.once('close', end),
  );
  return answerWith({ items: items.map(itemShown), more });
}

function itemShown(held: { token: string; id: string; ageMs: number; attempt: number; body: Uint8Array }) {
  const { token, id, ageMs, attempt, body } = held;
  return { token, item: id, age_ms: ageMs, attempt, body: base64url(body) };
}

const base64url = ({ buffer, byteOffset, length }: Uint8Array): string =>
  Buffer.from(buffer, byteOffset, length).toString('base64url');

async function settle(parts: RelayParts, c: Asked): Promise<Answer> {
  const queue = queueOf(c);
  if (queue instanceof Refused) return queue;
  const body = await bodyOf(parts, c, json);
  if (body instanceof Refused) return body;
  const refusal = byOwner(parts, c, queue, body);
  if (refusal !== undefined) return refusal;
  const given = objectOf(body);
  const what = given instanceof Refused ? given : settlementOf(given);
  return what instanceof Refused ? what : answerWith(await parts.store.settle(queue, what));
}

async function putCard(parts: RelayParts, c: Asked): Promise<Answer> {
  const queue = queueOf(c);
  if (queue instanceof Refused) return queue;
  const body = await bodyOf(parts, c, { ...bytes(relayLimits.cardBytesMax), mayBeEmpty: true });
  if (body instanceof Refused) return body;
  const refusal = byOwner(parts, c, queue, body);
  if (refusal !== undefined) return refusal;
  return (await parts.store.putCard(queue, body)) ? answerWith({ stored: body.length > 0 }) : noQueue();
}

async function card(parts: RelayParts, c: Asked): Promise<Answer> {
  const queue = queueOf(c);
  if (queue instanceof Refused) return queue;
  const found = await parts.store.presence(queue);
  if (found === undefined) return noQueue();
  return answerWith({
    age_ms: found.ageMs,
    gone: found.gone,
    card: found.card === undefined ? null : base64url(found.card),
  });
}

const full = (refusal: QueueRefusal): Refused =>
  new Refused(
    refusal,
    {
      queue_limit: 'the key has as many queues as it may',
      queue_full: 'the queue is full',
      relay_full: 'the relay is full',
    }[refusal],
  );
