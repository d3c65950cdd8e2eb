// Paths, methods, names and bodies of the HTTP interface; and what it tells of an owner.

import { connect } from 'node:net';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import type { Clock } from '../../src/ports/clock.ts';
import { type Asked, alice, bob, itemAt, queueAt, type Scene, startScene } from './scene.ts';

let scene: Scene;
let skippedMs = 0;
const storeClock: Clock = { ...systemClock, elapsedMs: () => systemClock.elapsedMs() + skippedMs };
const queue = queueAt(alice);

beforeEach(async () => {
  skippedMs = 0;
  scene = await startScene({ storeClock });
  await scene.register(alice);
});
afterEach(() => scene.close());

const coded = async (asked: Asked): Promise<string> => {
  const { status, code } = await scene.ask(asked);
  return `${status} ${code}`;
};

/** The status line of a request as it is written, which no client would send. */
const statusOf = (head: string): Promise<number> =>
  new Promise((resolve) => {
    let text = '';
    const socket = connect(scene.port, '127.0.0.1', () => socket.write(head));
    socket.on('data', (chunk) => (text += chunk.toString('latin1')));
    socket.on('error', () => {});
    socket.on('close', () => resolve(Number(/^HTTP\/1.1 (\d+)/.exec(text)?.[1])));
  });

describe('names of queues, ids of items and tokens', () => {
  it('are taken in their exact form alone [REL-007]', async () => {
    const [key = '', id = ''] = queue.split('.');
    const names = [
      `${key}.${id.slice(1)}`,
      `${key}.${id}0`,
      `${key}.${id.replace(/.$/, 'A')}`,
      `${key}.${id.replace(/.$/, 'g')}`,
      `${key.slice(1)}.${id}`,
      `${key}A.${id}`,
      `${key.slice(0, -1)}B.${id}`,
      `${key}${id}`,
      `${key}.${id}.`,
      `${key}%2e${id}`,
      `${queue}%00`,
      `${queue}%0a`,
      `%41${queue.slice(1)}`,
      '..',
      '%2e%2e',
    ];
    for (const name of names) {
      const path = `/v1/queues/${name}`;
      for (const asked of [
        { method: 'PUT', path, by: alice },
        { method: 'GET', path: `${path}/card` },
        { method: 'GET', path: `${path}/items`, by: alice },
        { method: 'POST', path: `${path}/items`, body: 'x', headers: { 'postbell-item': itemAt(1) } },
      ])
        expect(`${name} ${(await scene.ask(asked)).status}`).toBe(`${name} 400`);
    }
    for (const raw of ['\0', '\x01', '\x7f', '\u00e9']) {
      const head = `GET /v1/queues/${queue}${raw}/card HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`;
      expect(await statusOf(head)).toBe(400);
    }
    const anyText = fc.oneof(
      fc.string({ maxLength: 80 }),
      fc.stringMatching(/^[A-Za-z0-9_-]{40,44}\.[0-9a-fA-F]{30,33}$/),
    );
    const exact = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]\.[0-9a-f]{32}$/;
    const name = anyText.filter((text) => !exact.test(text) && !/^\.{0,2}$/.test(text));
    await fc.assert(
      fc.asyncProperty(name, async (text) => {
        const path = `/v1/queues/${encodeURIComponent(text)}/card`;
        expect((await scene.ask({ method: 'GET', path })).status).toBe(400);
      }),
      { numRuns: 200 },
    );
    const ids = [
      '',
      itemAt(1).slice(1),
      `${itemAt(1)}0`,
      itemAt(1).replace(/.$/, 'F'),
      `${itemAt(1)} `,
      'g'.repeat(32),
    ];
    for (const id_ of ids.filter((one) => one !== `${itemAt(1)} `)) {
      const { status } = await scene.post(queue, 1, 'x', { headers: { 'postbell-item': id_ } });
      expect(`${id_} ${status}`).toBe(`${id_} 400`);
    }
    await fc.assert(
      fc.asyncProperty(fc.string({ maxLength: 40 }), async (token) => {
        fc.pre(!/^[A-Za-z0-9_-]{21}[AQgw]$/.test(token));
        const acked = await scene.settle(alice, { ack: [token] });
        const deferred = await scene.settle(alice, { defer: [{ token, delay_s: 1 }] });
        expect([acked.code, deferred.code]).toEqual(['bad_request', 'bad_request']);
      }),
      { numRuns: 100 },
    );
    for (const token of [1, null, {}, ['x'], 'A'.repeat(23), `${'A'.repeat(21)}B`, `${'A'.repeat(21)}\0`])
      expect((await scene.settle(alice, { ack: [token] })).status).toBe(400);
    expect(await scene.items(alice)).toEqual([]);
  });
});

describe('requests', () => {
  const octets = { 'content-type': 'application/octet-stream', 'postbell-item': itemAt(1) };
  const items = `/v1/queues/${queue}/items`;

  it.each<[string, Asked, string]>([
    ['another path', { method: 'GET', path: '/v2/relay' }, '404 not_found'],
    ['a path that goes on', { method: 'GET', path: `${items}/1` }, '404 not_found'],
    ['a slash too many', { method: 'GET', path: '/v1/relay/' }, '400 bad_request'],
    ['another method', { method: 'PATCH', path: items }, '405 method_not_allowed'],
    ['a method of browsers', { method: 'OPTIONS', path: items }, '405 method_not_allowed'],
    ['DELETE of a card', { method: 'DELETE', path: `/v1/queues/${queue}/card` }, '405 method_not_allowed'],
    [
      'an item as text',
      { method: 'POST', path: items, body: 'x', headers: { ...octets, 'content-type': 'text/plain' } },
      '415 unsupported_media_type',
    ],
    [
      'a packed item',
      { method: 'POST', path: items, body: 'x', headers: { ...octets, 'content-encoding': 'gzip' } },
      '415 unsupported_media_type',
    ],
    ['no item', { method: 'POST', path: items, headers: octets }, '400 bad_item'],
    [
      'a wait too long',
      { method: 'GET', path: items, query: '?wait_ms=55001', by: alice },
      '400 bad_request',
    ],
    [
      'a wait that is none',
      { method: 'GET', path: items, query: '?wait_ms=-1', by: alice },
      '400 bad_request',
    ],
    [
      'two waits',
      { method: 'GET', path: items, query: '?wait_ms=1&wait_ms=2', by: alice },
      '400 bad_request',
    ],
    ['no items wanted', { method: 'GET', path: items, query: '?max=0', by: alice }, '400 bad_request'],
    ['too many', { method: 'GET', path: items, query: '?max=65', by: alice }, '400 bad_request'],
    [
      'an unknown queue',
      { method: 'GET', path: `/v1/queues/${queueAt(bob)}/items`, by: bob },
      '404 not_found',
    ],
    ['nothing to remove', { method: 'DELETE', path: `/v1/queues/${queueAt(bob)}`, by: bob }, '404 not_found'],
    [
      'what is not JSON',
      {
        method: 'POST',
        path: `/v1/queues/${queue}/settle`,
        body: '{',
        headers: { 'content-type': 'application/json' },
        by: alice,
      },
      '400 bad_request',
    ],
    [
      'a card too large',
      {
        method: 'PUT',
        path: `/v1/queues/${queue}/card`,
        body: new Uint8Array(65_537),
        headers: { 'content-type': 'application/octet-stream' },
        by: alice,
      },
      '413 too_large',
    ],
  ])('%s', async (_name, asked, answer) => {
    expect(await coded(asked)).toBe(answer);
  });

  it.each(['59', '90001', '1.5', '', 'day'])('a life of %j seconds is none', async (ttl) => {
    const { status } = await scene.post(queue, 1, 'x', { headers: { 'postbell-ttl': ttl } });
    expect(status).toBe(400);
  });

  it('settle at most 256 items at a time', async () => {
    const token = 'A'.repeat(22);
    expect((await scene.settle(alice, { ack: Array(256).fill(token) })).json).toEqual({
      settled: 0,
      unknown: 256,
    });
    const one = [{ token, delay_s: 1 }];
    expect((await scene.settle(alice, { ack: Array(256).fill(token), defer: one })).status).toBe(400);
  });

  it('of a browser are refused, and no answer invites one [REL-023]', async () => {
    const own = `http://127.0.0.1:${scene.port}`;
    for (const origin of ['https://page.example', own, 'null']) {
      const headers = { origin };
      expect(await coded({ method: 'GET', path: '/v1/relay', headers })).toBe('403 forbidden');
      expect(await coded({ method: 'GET', path: items, query: '?wait_ms=0', by: alice, headers })).toBe(
        '403 forbidden',
      );
      const post = { method: 'POST', path: items, body: 'x', headers: { ...octets, origin } };
      expect(await coded(post)).toBe('403 forbidden');
      const preflight = { origin, 'access-control-request-method': 'POST' };
      expect(await coded({ method: 'OPTIONS', path: items, headers: preflight })).toBe('403 forbidden');
    }
    const answers = [
      await scene.ask({ method: 'GET', path: '/v1/relay' }),
      await scene.ask({ method: 'GET', path: '/', headers: { origin: own } }),
      await scene.poll(alice),
    ];
    for (const { headers } of answers)
      expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
    expect(await scene.items(alice)).toEqual([]);
  });

  it('the relay describes itself', async () => {
    const { json } = await scene.ask({ method: 'GET', path: '/v1/relay' });
    expect(json).toMatchObject({
      id: scene.store.id,
      protocols: ['postbell-1'],
      posting: 'open',
      directory: false,
    });
    expect(Math.abs((json.now as number) - Date.now())).toBeLessThan(5_000);
  });
});

describe('presence', () => {
  const cardPath = `/v1/queues/${queue}/card`;
  const card = async (): Promise<Record<string, unknown>> =>
    (await scene.ask({ method: 'GET', path: cardPath })).json;
  const putCard = (body: Uint8Array): Promise<{ status: number }> =>
    scene.ask({
      method: 'PUT',
      path: cardPath,
      body,
      headers: { 'content-type': 'application/octet-stream' },
      by: alice,
    });

  it('is the age of the last drain, whether it was closed, and a card, and nothing else [REL-034]', async () => {
    await scene.poll(alice);
    skippedMs += 10_000;
    const before = await card();
    expect(Object.keys(before).toSorted()).toEqual(['age_ms', 'card', 'gone']);
    expect(before).toMatchObject({ gone: false, card: null });
    expect(before.age_ms).toBeGreaterThanOrEqual(10_000);
    expect(before.age_ms).toBeLessThan(15_000);
    // Neither a post, nor a card, nor a settlement, nor another's drain is a sign of the owner.
    await scene.post(queue, 1);
    await scene.register(bob);
    await scene.poll(bob);
    expect((await putCard(new Uint8Array([1, 2, 3]))).status).toBe(200);
    await scene.settle(alice, { ack: [] });
    expect((await card()).age_ms).toBeGreaterThanOrEqual(10_000);
    expect((await card()).card).toBe('AQID');
    await scene.poll(alice);
    expect((await card()).age_ms).toBeLessThan(5_000);
    await scene.ask({ method: 'DELETE', path: `/v1/queues/${queue}`, by: alice });
    expect(await card()).toMatchObject({ gone: true });
  });

  it('closing keeps the mail; purging keeps nothing [REL-037]', async () => {
    const closing = (query: string) =>
      scene.ask({ method: 'DELETE', path: `/v1/queues/${queue}`, query, by: alice });
    expect((await closing('')).json).toEqual({ gone: true });
    expect(await card()).toMatchObject({ gone: true });
    expect((await scene.post(queue, 1)).status).toBe(202);
    expect((await scene.register(alice)).json).toEqual({ created: false });
    expect(await card()).toMatchObject({ gone: false });
    const [item] = await scene.items(alice);
    expect(item?.item).toBe(itemAt(1));
    await closing('?purge=0');
    expect((await scene.post(queue, 2)).status).toBe(202);
    expect(await scene.items(alice)).toMatchObject([{ item: itemAt(2) }]);
    expect(await card()).toMatchObject({ gone: false });
    await putCard(new Uint8Array([1]));
    expect((await closing('?purge=1')).json).toEqual({ gone: true });
    expect((await scene.post(queue, 3)).code).toBe('queue_unknown');
    expect((await scene.ask({ method: 'GET', path: cardPath })).status).toBe(404);
    expect((await scene.poll(alice)).status).toBe(404);
    expect((await scene.register(alice)).json).toEqual({ created: true });
    expect(await scene.items(alice)).toEqual([]);
  });
});
