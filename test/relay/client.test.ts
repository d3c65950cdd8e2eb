// The client of a relay: beside the real one, servers that are none, or do badly what a relay does.

import { createServer, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, createServer as createTcp, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import type { RelayClientOptions } from '../../src/carriers/postbell/asking.ts';
import { relayClient } from '../../src/carriers/postbell/client.ts';
import { isPublicAddress } from '../../src/carriers/postbell/public-address.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { systemRandom } from '../../src/platform/random.ts';
import type { Clock } from '../../src/ports/clock.ts';
import { type Relay, RelayFailure } from '../../src/ports/relay.ts';
import { readAddress } from '../../src/protocol/address.ts';
import { isRefusal } from '../../src/protocol/errors.ts';
import { alice, itemAt, queueAt, startScene } from './scene.ts';

const ending: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ending.splice(0).reverse()) await end();
});

const queue = queueAt(alice);
const item = { id: itemAt(1), body: new Uint8Array([1, 2, 3]), ttl_s: 600 };

const clientOf = (origin: string, more: Partial<RelayClientOptions> = {}): Relay =>
  relayClient({
    origin,
    signer: alice,
    clock: systemClock,
    random: systemRandom,
    mayReach: 'anywhere',
    ...more,
  });

async function listening(server: Server | ReturnType<typeof createTcp>): Promise<string> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ending.push(() => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const serving = (listener: RequestListener): Promise<string> => listening(createServer(listener));

const failureOf = async (asked: Promise<unknown>): Promise<RelayFailure> => {
  const outcome = await asked.then(
    () => new Error('it did not fail'),
    (error: unknown) => error,
  );
  expect(outcome).toBeInstanceOf(RelayFailure);
  const failure = outcome as RelayFailure;
  expect(failure.message).not.toMatch(/[\r\n]/);
  expect(failure.message).toContain(failure.origin);
  expect(failure.message).not.toContain(queue);
  expect(failure.message).not.toContain(alice.key);
  return failure;
};

/** A clock whose long waits are over soon; a poll is over with them. */
const hasty: Clock = { ...systemClock, after: (ms, then) => systemClock.after(ms > 1_000 ? 50 : ms, then) };

describe('with a relay', () => {
  it('does all that the port says', async () => {
    const scene = await startScene();
    ending.push(() => scene.close());
    const relay = clientOf(`http://127.0.0.1:${scene.port}`);
    const described = await relay.describe();
    expect(described).toEqual({
      id: scene.store.id,
      protocols: ['postbell-1'],
      now_ms: expect.any(Number),
    });
    expect(await relay.register(queue, { door: false })).toEqual({ created: true });
    expect(await relay.register(queue, { door: false })).toEqual({ created: false });
    expect(await relay.post(queue, item)).toEqual({ duplicate: false });
    expect(await relay.post(queue, item)).toEqual({ duplicate: true });
    const { items, more } = await relay.poll(queue, { wait_ms: 0, max: 16 });
    expect(more).toBe(false);
    expect(items).toMatchObject([{ id: item.id, body: item.body, attempt: 1 }]);
    const waiting = relay.poll(queue, { wait_ms: 20_000, max: 1 });
    await relay.post(queue, { ...item, id: itemAt(2) });
    const [second] = (await waiting).items;
    expect(second?.id).toBe(itemAt(2));
    const defer = [{ token: second?.token as string, delay_s: 60 }];
    expect(await relay.settle(queue, { ack: [items[0]?.token as string], defer })).toEqual({
      settled: 2,
      unknown: 0,
    });
    await relay.putCard(queue, new Uint8Array([9, 8]));
    expect(await relay.card(queue)).toMatchObject({ gone: false, card: new Uint8Array([9, 8]) });
    await relay.putCard(queue, new Uint8Array());
    expect((await relay.card(queue))?.card).toBeUndefined();
    await relay.close(queue, { purge: false });
    expect(await relay.card(queue)).toMatchObject({ gone: true });
    await relay.close(queue, { purge: true });
    await relay.close(queue, { purge: true });
    expect(await relay.card(queue)).toBeUndefined();
    const unknown = await failureOf(relay.post(queue, item));
    expect(unknown).toMatchObject({ kind: 'refused', status: 404, code: 'queue_unknown' });
  });

  it('signs by the relay\u2019s clock after one retry, and by no other time of its own [REL-027]', async () => {
    const scene = await startScene();
    ending.push(() => scene.close());
    const late: Clock = { ...systemClock, nowMs: () => systemClock.nowMs() + 7_200_000 };
    const origin = `http://127.0.0.1:${scene.port}`;
    const relay = clientOf(origin, { clock: late });
    const asked: string[] = [];
    const counting = await serving((incoming, outgoing) => {
      asked.push(`${incoming.method}`);
      outgoing.setHeader('content-type', 'application/json');
      outgoing.statusCode = 401;
      outgoing.end(JSON.stringify({ error: { code: 'clock', message: '', now: systemClock.nowMs() } }));
    });
    expect(await relay.register(queue, { door: false })).toEqual({ created: true });
    expect((await relay.poll(queue, { wait_ms: 0, max: 1 })).items).toEqual([]);
    // One that never takes the time that it tells is asked twice, and not for ever; it is said by how much the clock is off.
    const failure = await failureOf(clientOf(counting, { clock: late }).register(queue, { door: false }));
    expect(asked).toHaveLength(2);
    expect(failure).toMatchObject({ kind: 'refused', status: 401, code: 'clock' });
    expect(failure.message).toMatch(/this machine's clock is about 7[12]\d\d s ahead;/);
    // What is told to another relay is signed by this machine's clock: it learns the difference anew.
    const second = await startScene();
    ending.push(() => second.close());
    let signedAt = 0;
    const proxied = await serving((incoming, outgoing) => {
      signedAt = Number(/created=(\d+)/.exec(String(incoming.headers['signature-input']))?.[1]);
      outgoing.setHeader('content-type', 'application/json');
      outgoing.end('{"created":true}');
    });
    await clientOf(proxied, { clock: late }).register(queue, { door: false });
    expect(Math.abs(signedAt * 1_000 - late.nowMs())).toBeLessThan(5_000);
    expect(Math.abs(late.nowMs() - systemClock.nowMs() - 7_200_000)).toBeLessThan(1_000);
  });

  it('ignores members that it does not know, as the relay does [REL-024]', async () => {
    const origin = await serving((_, outgoing) => {
      outgoing.setHeader('content-type', 'application/json; charset=utf-8');
      outgoing.end('{"settled":1,"unknown":0,"more":{"to":"come"}}');
    });
    expect(await clientOf(origin).settle(queue, { ack: [], defer: [] })).toEqual({ settled: 1, unknown: 0 });
    const scene = await startScene();
    ending.push(() => scene.close());
    const put = {
      method: 'PUT',
      path: `/v1/queues/${queue}`,
      body: '{"door":false,"colour":"red","__proto__":{"door":1}}',
      headers: { 'content-type': 'application/json' },
      by: alice,
    };
    expect((await scene.ask(put)).json).toEqual({ created: true });
    expect((await scene.settle(alice, { ack: [], others: [1] })).json).toEqual({ settled: 0, unknown: 0 });
  });
});

const json =
  (status: number, text: string): RequestListener =>
  (incoming, outgoing) => {
    incoming.resume();
    outgoing.writeHead(status, { 'content-type': 'application/json' });
    outgoing.end(text);
  };

describe('with what is no relay', () => {
  it.each<[string, RequestListener, string, RegExp]>([
    [
      'a web page',
      (_, outgoing) => outgoing.setHeader('content-type', 'text/html').end('<html>'),
      'foreign',
      /answers 200 with text\/html/,
    ],
    ['a bare 500', (_, outgoing) => outgoing.writeHead(500).end(), 'foreign', /answers 500 with no type/],
    [
      'a redirect',
      (_, outgoing) => outgoing.writeHead(302, { location: 'http://127.0.0.1:9/' }).end(),
      'foreign',
      /sends elsewhere/,
    ],
    ['what is not JSON', json(200, '{'), 'foreign', /not JSON/],
    ['a list', json(200, '[]'), 'foreign', /not answer with an object/],
    ['an error of another kind', json(404, '{"error":"no"}'), 'foreign', /words of no Postbell relay/],
    ['a success that says nothing', json(200, '{}'), 'foreign', /does not say that it took/],
    ['too much', json(200, `"${'x'.repeat(8_400_000)}"`), 'foreign', /more than 8 MiB/],
    [
      'an answer that breaks off',
      (_, outgoing) =>
        outgoing
          .writeHead(200, { 'content-type': 'application/json', 'content-length': 10 })
          .write('{', () => outgoing.destroy()),
      'unreachable',
      /broke /,
    ],
    [
      'a full store',
      json(503, '{"error":{"code":"relay_full","message":"","retry_after_ms":5000}}'),
      'refused',
      /is full/,
    ],
    [
      'a code of the future',
      json(403, '{"error":{"code":"moon","message":"a\\nb"}}'),
      'refused',
      /\(moon\)$/,
    ],
  ])('%s', async (_name, listener, kind, words) => {
    const origin = await serving(listener);
    const failure = await failureOf(clientOf(origin).post(queue, item));
    expect(failure.kind).toBe(kind);
    expect(failure.message).toMatch(words);
    if (failure.code === 'relay_full') expect(failure.retryAfterMs).toBe(5_000);
  });

  it('takes no item that is not whole, and none that it did not ask for', async () => {
    const good = { token: 't', item: itemAt(1), age_ms: 1, attempt: 1, body: 'AQID' };
    const answers = [
      { items: [{ ...good, body: 'AQI=' }], more: false },
      { items: [{ ...good, item: 'x' }], more: false },
      { items: [{ ...good, age_ms: -1 }], more: false },
      { items: [good, good], more: false },
      { items: [good] },
      { items: {}, more: false },
      { items: [null], more: false },
    ];
    for (const answer of answers) {
      const origin = await serving(json(200, JSON.stringify(answer)));
      const failure = await failureOf(clientOf(origin).poll(queue, { wait_ms: 0, max: 1 }));
      expect(failure.kind).toBe('foreign');
    }
  });

  it('nothing at all, another protocol, and a name that does not exist', async () => {
    const gone = createServer();
    await new Promise<void>((resolve) => gone.listen(0, '127.0.0.1', resolve));
    const { port } = gone.address() as AddressInfo;
    await new Promise((resolve) => gone.close(resolve));
    const closed = await failureOf(clientOf(`http://127.0.0.1:${port}`).describe());
    expect(closed).toMatchObject({ kind: 'unreachable', status: undefined });
    expect(closed.message).toMatch(/refuses connections: is it running/);
    const ssh = await listening(createTcp((socket) => socket.end('SSH-2.0-x\r\n')));
    expect((await failureOf(clientOf(ssh).describe())).kind).toBe('foreign');
    const plain = (await serving(json(200, '{}'))).replace('http:', 'https:');
    expect((await failureOf(clientOf(plain).describe())).kind).toBe('foreign');
    const nowhere = await failureOf(clientOf('http://relay.invalid').describe());
    expect(nowhere.kind).toBe('unreachable');
    expect(nowhere.message).toMatch(/name that/);
  });
});

describe('with one that is slow', () => {
  it('gives up 30 s after a poll should have ended, and 10 s after a connection should stand', async () => {
    const asked: number[] = [];
    const noting: Clock = {
      ...hasty,
      after: (ms, then) => {
        asked.push(ms);
        return hasty.after(ms, then);
      },
    };
    const origin = await listening(createTcp(() => {}));
    const failure = await failureOf(
      clientOf(origin, { clock: noting }).poll(queue, { wait_ms: 20_000, max: 1 }),
    );
    expect(failure).toMatchObject({ kind: 'unreachable' });
    expect(failure.message).toMatch(/gives no answer within 50 s/);
    expect(asked).toEqual(expect.arrayContaining([50_000, 10_000]));
  });

  it('is ended by its caller', async () => {
    const origin = await listening(createTcp(() => {}));
    const caller = new AbortController();
    const polling = clientOf(origin).poll(queue, { wait_ms: 20_000, max: 1 }, caller.signal);
    setTimeout(() => caller.abort(), 30);
    expect((await failureOf(polling)).message).toMatch(/was not waited for/);
    const before = clientOf(origin).describe(AbortSignal.abort());
    expect((await failureOf(before)).kind).toBe('unreachable');
  });

  it('has many requests under way that one signal ends, and no warning of it', async () => {
    const warnings: Error[] = [];
    const note = (warning: Error): void => void warnings.push(warning);
    process.on('warning', note);
    ending.push(() => process.off('warning', note));
    const origin = await serving(() => {});
    const abort = new AbortController();
    const asked = Array.from({ length: 32 }, () => failureOf(clientOf(origin).describe(abort.signal)));
    await new Promise((resolve) => setImmediate(resolve));
    abort.abort();
    expect(await Promise.all(asked)).toHaveLength(32);
    expect(warnings).toEqual([]);
  });

  it('makes a request again whose kept connection was closed meanwhile', async () => {
    const requests = new Map<Socket, number>();
    const proofs: unknown[] = [];
    const answer = json(200, '{"settled":0,"unknown":0}');
    // Takes one request of each connection, and closes at the second without a word.
    const server = createServer((incoming, outgoing) => {
      const count = (requests.get(incoming.socket) ?? 0) + 1;
      requests.set(incoming.socket, count);
      proofs.push(incoming.headers['signature-input']);
      if (count > 1) incoming.socket.destroy();
      else answer(incoming, outgoing);
    });
    const relay = clientOf(await listening(server));
    for (let nth = 0; nth < 3; nth += 1) await relay.settle(queue, { ack: [], defer: [] });
    expect([...requests.values()]).toEqual([2, 2, 1]);
    // A relay that has seen the first one takes no nonce twice.
    expect(new Set(proofs).size).toBe(5);
  });
});

describe('addresses', () => {
  const closed = [
    '127.0.0.1',
    '127.9.9.9',
    '0.0.0.0',
    '10.1.2.3',
    '172.16.0.1',
    '172.31.255.255',
    '192.168.1.1',
    '169.254.169.254',
    '100.64.0.1',
    '224.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    '::ffff:127.0.0.1',
    '::ffff:10.0.0.1',
    '::127.0.0.1',
    '64:ff9b::7f00:1',
    'fe80::1',
    'fc00::1',
    'fd12::1',
    'ff02::1',
    '2002:7f00:1::',
    '2001:db8::1',
    'name',
  ];
  it.each(closed)('%s is not of the open internet', (address) =>
    expect(isPublicAddress(address)).toBe(false),
  );
  it.each(['8.8.8.8', '::ffff:8.8.8.8', '172.32.0.1', '1.1.1.1', '2606:4700:4700::1111', '2a00:1450::1'])(
    '%s is',
    (address) => expect(isPublicAddress(address)).toBe(true),
  );

  it('a relay that others named is https, at public addresses, and sends nowhere else [PEER-061]', async () => {
    let reached = 0;
    const origin = await serving((_, outgoing) => {
      reached += 1;
      outgoing.end();
    });
    const { port } = new URL(origin);
    const others: Partial<RelayClientOptions> = { mayReach: 'public' };
    const named = [
      origin,
      'http://relay.example',
      `https://127.0.0.1:${port}`,
      `https://[::1]:${port}`,
      `https://[::ffff:7f00:1]:${port}`,
      'https://192.168.0.7',
      'https://169.254.169.254',
      `https://localhost:${port}`,
    ];
    for (const one of named) {
      const failure = await failureOf(clientOf(one, others).describe());
      expect(`${one} ${failure.kind}`).toBe(`${one} unreachable`);
      expect(failure.message).toContain('is not asked');
    }
    // A name is refused by what it resolves to, each time it is connected to, and for one address among good ones.
    const answers = [['127.0.0.1'], ['8.8.8.8', '10.0.0.1'], ['::ffff:127.0.0.1']];
    for (const addresses of answers) {
      const resolve: NonNullable<RelayClientOptions['resolve']> = (_, then) =>
        then(
          null,
          addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
        );
      const client = clientOf(`https://relay.example:${port}`, { ...others, resolve });
      expect((await failureOf(client.describe())).message).toContain('list it in POSTBELL_RELAYS');
    }
    expect(reached).toBe(0);
    // Four at most in an address, of the one form.
    const five = [1, 2, 3, 4, 5].map((nth) => `https://relay${nth}.example`);
    const door = '0'.repeat(32);
    const read = (relays: string[]) => readAddress(`postbell:${alice.key}.${door}@${relays.join(',')}`);
    expect(isRefusal(read(five))).toBe(true);
    expect(isRefusal(read(five.slice(1)))).toBe(false);
    // Listed by the operator, the same one is asked, and its redirect is not followed all the same.
    const redirecting = await serving((_, outgoing) => outgoing.writeHead(307, { location: origin }).end());
    expect((await failureOf(clientOf(redirecting).describe())).kind).toBe('foreign');
    expect(reached).toBe(0);
    await failureOf(clientOf(origin).describe());
    expect(reached).toBe(1);
  });
});

it('a relay that takes connections and never answers delays no other', async () => {
  const stalled = clientOf(await listening(createTcp(() => {})), { clock: hasty });
  const scene = await startScene();
  ending.push(() => scene.close());
  await scene.register(alice);
  const well = clientOf(`http://127.0.0.1:${scene.port}`);
  const order: string[] = [];
  const first = failureOf(stalled.post(queue, item)).then(() => order.push('stalled'));
  await well.post(queue, item).then(() => order.push('well'));
  await first;
  expect(order).toEqual(['well', 'stalled']);
});
