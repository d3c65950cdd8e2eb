// A relay of Postbell's own kind, over HTTP (relay.md, section 2). Requests about own queues are signed by the identity, posts by nobody.

import { type LeasedItem, type QueuePresence, type Relay, RelayFailure } from '../../ports/relay.ts';
import { isObject } from '../../protocol/json.ts';
import { isItemId } from '../../protocol/relay-http.ts';
import { type Ask, askerOf, foreign, type RelayClientOptions } from './asking.ts';

export function relayClient(options: RelayClientOptions): Relay {
  const { origin } = options;
  const { ask, aheadMs } = askerOf(options);
  return {
    origin,
    aheadMs,
    describe: async (signal) =>
      readDescription(origin, await ask({ method: 'GET', path: '/v1/relay', signed: false, signal })),
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
    card: async (queue, signal) => {
      const call = { method: 'GET' as const, path: `/v1/queues/${queue}/card`, signed: false, signal };
      const value = await ask(call).catch(unlessUnknown(undefined));
      return value && readPresence(origin, value);
    },
    ...ownQueues(origin, ask),
  };
}

const json = (value: object) => ({
  type: 'application/json' as const,
  body: Buffer.from(JSON.stringify(value)),
});

/** What only the owner of a queue may ask for: each is signed. */
function ownQueues(
  origin: string,
  ask: Ask,
): Pick<Relay, 'register' | 'close' | 'poll' | 'settle' | 'putCard'> {
  return {
    register: async (queue, { door }, signal) => {
      const value = await ask({
        method: 'PUT',
        path: `/v1/queues/${queue}`,
        ...json(door ? { door } : {}),
        signal,
      });
      if (typeof value.created !== 'boolean') throw foreign(origin, 'does not say whether it made the queue');
      return { created: value.created };
    },
    close: async (queue, { purge }, signal) => {
      const call = {
        method: 'DELETE' as const,
        path: `/v1/queues/${queue}`,
        query: purge ? '?purge=1' : '',
        signal,
      };
      // One that is not there is gone.
      const value = await ask(call).catch(unlessUnknown({ gone: true }));
      if (value.gone !== true) throw foreign(origin, 'does not say that the queue is gone');
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
      const items = readItems(origin, value.items, max);
      if (typeof value.more !== 'boolean') throw foreign(origin, 'does not say whether there is more');
      return { items, more: value.more };
    },
    settle: async (queue, what, signal) => {
      const { settled, unknown } = await ask({
        method: 'POST',
        path: `/v1/queues/${queue}/settle`,
        ...json(what),
        signal,
      });
      if (!isCount(settled) || !isCount(unknown)) throw foreign(origin, 'does not say what it settled');
      return { settled, unknown };
    },
    putCard: async (queue, card, signal) => {
      const type = 'application/octet-stream';
      await ask({ method: 'PUT', path: `/v1/queues/${queue}/card`, type, body: card, signal });
    },
  };
}

/** Takes a relay's word that there is no such queue for `value`. */
const unlessUnknown =
  <T>(value: T) =>
  (error: unknown): T => {
    if (error instanceof RelayFailure && error.queueUnknown) return value;
    throw error;
  };

/** As strict as the pure reader, and faster by far. */
function bytesOf(text: unknown): Uint8Array | undefined {
  if (typeof text !== 'string') return undefined;
  const bytes = Buffer.from(text, 'base64url');
  return bytes.toString('base64url') === text ? new Uint8Array(bytes) : undefined;
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

/** Of another relay than this one, too: it has to be one that can be sent back. */
const tokenCharactersMax = 256;

function readDescription(origin: string, { id, protocols, now }: Record<string, unknown>) {
  const fits =
    typeof id === 'string' &&
    Array.isArray(protocols) &&
    protocols.every((one) => typeof one === 'string') &&
    typeof now === 'number';
  if (!fits) throw foreign(origin, 'does not describe itself');
  return { id, protocols: protocols as string[], now_ms: now };
}

function readItems(origin: string, items: unknown, max: number): LeasedItem[] {
  if (!Array.isArray(items) || items.length > max) throw foreign(origin, 'lists no items');
  return items.map((one: unknown) => {
    const item = isObject(one) ? one : {};
    const { token, item: id, age_ms, attempt, body } = item;
    const bytes = bytesOf(body);
    const isToken = typeof token === 'string' && token.length <= tokenCharactersMax;
    if (!isToken || !isItemId(id) || !isCount(age_ms) || !isCount(attempt) || bytes === undefined)
      throw foreign(origin, 'lists items of another shape');
    return { token, id, age_ms, attempt, body: bytes };
  });
}

function readPresence(origin: string, { age_ms, gone, card }: Record<string, unknown>): QueuePresence {
  const bytes = bytesOf(card);
  const fits = isCount(age_ms) && typeof gone === 'boolean' && (card === null || bytes !== undefined);
  if (!fits) throw foreign(origin, 'does not say how old its word is');
  return { age_ms, gone, card: bytes };
}
