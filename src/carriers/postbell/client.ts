// A relay of Postbell's own kind, over HTTP (relay.md, section 2). Requests about own queues are signed by the identity, posts by nobody.

import { type LeasedItem, type QueuePresence, type Relay, RelayFailure } from '../../ports/relay.ts';
import { isObject } from '../../protocol/json.ts';
import { askerOf, foreign, type RelayClientOptions } from './asking.ts';

export function relayClient(options: RelayClientOptions): Relay {
  const { origin } = options;
  const ask = askerOf(options);
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

/** Faster than the strict reader by far; what it lets through, the gate or the card's seal refuses. */
const bytesOf = (text: unknown): Uint8Array | undefined =>
  typeof text === 'string' && /^[\w-]*$/.test(text) ? Buffer.from(text, 'base64url') : undefined;

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
    const bytes = bytesOf(body);
    if (typeof token !== 'string' || typeof id !== 'string' || bytes === undefined)
      throw foreign(origin, 'lists items of another shape');
    return { token, id, age_ms: Number(age_ms) || 0, attempt: Number(attempt) || 1, body: bytes };
  });
}

function readPresence(origin: string, { age_ms, gone, card }: Record<string, unknown>): QueuePresence {
  const bytes = bytesOf(card);
  const fits =
    typeof age_ms === 'number' &&
    age_ms >= 0 &&
    typeof gone === 'boolean' &&
    (card === null || bytes !== undefined);
  if (!fits) throw foreign(origin, 'does not say how old its word is');
  return { age_ms, gone, card: bytes };
}
