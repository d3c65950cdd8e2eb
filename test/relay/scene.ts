// A relay on a loopback port over a real store file, and requests as any HTTP client could make them.

import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, type IncomingHttpHeaders, request } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type Signer, signerOf } from '../../src/crypto/ed25519.ts';
import { signRequest, verifyRequest } from '../../src/crypto/http-signature.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { systemRandom } from '../../src/platform/random.ts';
import type { Clock } from '../../src/ports/clock.ts';
import type { QueueStore } from '../../src/ports/relay-queue.ts';
import { type RelayServer, startRelay } from '../../src/relay/server.ts';
import { openRelayStore } from '../../src/store/relay/open.ts';

export const alice = signerOf(new Uint8Array(32).fill(1));
export const bob = signerOf(new Uint8Array(32).fill(2));
export const queueAt = (signer: Signer, nth = 1): string => `${signer.key}.${String(nth).padStart(32, '0')}`;
export const itemAt = (nth: number): string => nth.toString(16).padStart(32, '0');

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
  /** Of a JSON answer. */
  json: Record<string, unknown>;
  /** The relay's own code, where it refused. */
  code: string | undefined;
}

export interface Asked {
  method: string;
  path: string;
  query?: string;
  body?: Uint8Array | string;
  headers?: Record<string, string>;
  /** Signs it. */
  by?: Signer;
  /** Changes what is signed, or what is sent. */
  signed?: Partial<{ method: string; authority: string; path: string; query: string; body: Uint8Array }>;
  created?: number;
  nonce?: Uint8Array;
  signal?: AbortSignal;
}

export interface Ask {
  readonly authority: string;
  ask(asked: Asked): Promise<Answer>;
  end(): void;
}

/** Asks the relay at this port. */
export function askAt(port: number, clock: Pick<Clock, 'nowMs'> = systemClock): Ask {
  const authority = `127.0.0.1:${port}`;
  const agent = new Agent({ keepAlive: true });
  return {
    authority,
    end: () => agent.destroy(),
    ask: (asked) => {
      const body = asked.body === undefined ? undefined : new Uint8Array(Buffer.from(asked.body));
      const { method, path: at, query = '' } = asked;
      const target = { method, authority, path: at, query, ...(body && { body }), ...asked.signed };
      const headers =
        asked.by === undefined
          ? {}
          : signRequest({
              ...target,
              created: asked.created ?? Math.floor(clock.nowMs() / 1_000),
              nonce: asked.nonce ?? systemRandom.bytes(16),
              signer: asked.by,
            });
      return send(agent, port, { ...asked, headers: { ...headers, ...asked.headers } }, body);
    },
  };
}

function send(agent: Agent, port: number, asked: Asked, body: Uint8Array | undefined): Promise<Answer> {
  const { method, path: at, query = '', headers, signal } = asked;
  const options = {
    agent,
    host: '127.0.0.1',
    port,
    method,
    path: at + query,
    headers: { ...(body && { 'content-length': body.length }), ...headers },
    ...(signal && { signal }),
  };
  return new Promise((resolve, reject) => {
    const call = request(options, (incoming) => {
      let text = '';
      incoming.on('data', (chunk: Buffer) => (text += chunk.toString('utf8')));
      incoming.on('error', reject);
      incoming.on('end', () => {
        const json = text.startsWith('{') ? (JSON.parse(text) as Record<string, unknown>) : {};
        const code = (json.error as { code?: string } | undefined)?.code;
        resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, text, json, code });
      });
    });
    call.on('error', reject);
    call.end(body);
  });
}

export interface Item {
  token: string;
  item: string;
  age_ms: number;
  attempt: number;
  body: string;
}

export interface Scene extends Ask {
  port: number;
  store: QueueStore;
  /** Lines of the log. */
  log: string[];
  register(signer: Signer, nth?: number, door?: boolean): Promise<Answer>;
  post(queue: string, nth: number, body?: Uint8Array | string, more?: Partial<Asked>): Promise<Answer>;
  poll(signer: Signer, query?: string, nth?: number, signal?: AbortSignal): Promise<Answer>;
  items(signer: Signer, query?: string, nth?: number): Promise<Item[]>;
  settle(signer: Signer, what: object, nth?: number): Promise<Answer>;
  close(): Promise<void>;
}

export async function startScene(
  options: {
    clock?: Clock;
    storeClock?: Clock;
    authority?: string | undefined;
    tamper?: (store: QueueStore) => QueueStore;
  } = {},
): Promise<Scene> {
  const { clock = systemClock, storeClock = systemClock, tamper = (store) => store } = options;
  const directory = mkdtempSync(path.join(tmpdir(), 'pb-relay-'));
  const opened = await openRelayStore({
    path: path.join(directory, 'relay.db'),
    clock: storeClock,
    random: systemRandom,
  });
  const store = tamper(opened);
  const log: string[] = [];
  const note = (event: string, fields?: object): void => void log.push(JSON.stringify({ event, ...fields }));
  const relay: RelayServer = await startRelay({
    store,
    clock,
    log: { info: note, warn: note },
    verify: verifyRequest,
    host: '127.0.0.1',
    port: 0,
    authority: options.authority,
  });
  const asking = askAt(relay.port, clock);
  const { ask } = asking;
  const items = (signer: Signer, nth = 1): string => `/v1/queues/${queueAt(signer, nth)}/items`;
  const poll: Scene['poll'] = (by, query = '?wait_ms=0', nth = 1, signal) =>
    ask({ method: 'GET', path: items(by, nth), query, by, ...(signal && { signal }) });
  const asJson = { 'content-type': 'application/json' };
  return {
    ...asking,
    port: relay.port,
    store,
    log,
    register: (by, nth = 1, door = false) =>
      ask({
        method: 'PUT',
        path: `/v1/queues/${queueAt(by, nth)}`,
        body: JSON.stringify({ door }),
        headers: asJson,
        by,
      }),
    post: (queue, nth, body = `item ${nth}`, more = {}) =>
      ask({
        method: 'POST',
        path: `/v1/queues/${queue}/items`,
        body,
        ...more,
        headers: {
          'content-type': 'application/octet-stream',
          'postbell-item': itemAt(nth),
          ...more.headers,
        },
      }),
    poll,
    items: async (by, query, nth) => (await poll(by, query, nth)).json.items as Item[],
    settle: (by, what, nth = 1) =>
      ask({
        method: 'POST',
        path: `/v1/queues/${queueAt(by, nth)}/settle`,
        body: JSON.stringify(what),
        headers: asJson,
        by,
      }),
    close: async () => {
      asking.end();
      await relay.close();
      await opened.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
