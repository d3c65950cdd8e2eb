// The life of an item at a relay, over HTTP.

import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import type { Clock } from '../../src/ports/clock.ts';
import { alice, bob, itemAt, queueAt, type Scene, startScene } from './scene.ts';

let scene: Scene;
/** Time that has passed for the store beside the real one. */
let skippedMs = 0;
const storeClock: Clock = { ...systemClock, elapsedMs: () => systemClock.elapsedMs() + skippedMs };
const queue = queueAt(alice);

beforeEach(async () => {
  skippedMs = 0;
  scene = await startScene({ storeClock });
  await scene.register(alice);
});
afterEach(() => scene.close());

const postAll = async (...all: number[]): Promise<void> => {
  for (const nth of all) expect((await scene.post(queue, nth)).status).toBe(202);
};
const idsOf = async (query?: string): Promise<number[]> =>
  (await scene.items(alice, query)).map(({ item }) => Number.parseInt(item, 16));

describe('posting', () => {
  it('to a queue that nobody registered is 404 and stores nothing [REL-008]', async () => {
    const nowhere = queueAt(bob);
    const { status, code } = await scene.post(nowhere, 1);
    expect([status, code]).toEqual([404, 'queue_unknown']);
    await scene.register(bob);
    expect(await scene.items(bob)).toEqual([]);
  });

  it('the same id twice is stored once while the first is queued [REL-010]', async () => {
    expect((await scene.post(queue, 1)).json).toEqual({ accepted: true });
    const again = await scene.post(queue, 1, 'other');
    expect([again.status, again.json]).toEqual([200, { accepted: true, duplicate: true }]);
    const items = await scene.items(alice);
    expect(items.map(({ body }) => Buffer.from(body, 'base64url').toString())).toEqual(['item 1']);
    await scene.settle(alice, { ack: [items[0]?.token] });
    const later = await scene.post(queue, 1, 'other');
    expect([later.status, later.json]).toEqual([202, { accepted: true }]);
    expect(await idsOf()).toEqual([1]);
  });

  it('takes bodies up to 135,168 bytes, and no more of them [REL-022]', async () => {
    expect((await scene.post(queue, 1, new Uint8Array(131_125))).status).toBe(202);
    expect((await scene.post(queue, 2, new Uint8Array(135_168))).status).toBe(202);
    const large = await scene.post(queue, 3, new Uint8Array(135_169));
    expect([large.status, large.code]).toEqual([413, 'too_large']);
    const { connect } = await import('node:net');
    const head = (length: string): string =>
      `POST /v1/queues/${queue}/items HTTP/1.1\r\nhost: x\r\ncontent-type: application/octet-stream\r\npostbell-item: ${itemAt(4)}\r\n${length}\r\n\r\n`;
    /** Sends that much, never the end, and waits for the answer. */
    const partly = (text: string, bytes: number): Promise<string> =>
      new Promise((resolve) => {
        let answer = '';
        const socket = connect(scene.port, '127.0.0.1', () => {
          socket.write(text);
          if (bytes > 0) socket.write(`${bytes.toString(16)}\r\n${'x'.repeat(bytes)}\r\n`);
        });
        socket.on('data', (chunk) => (answer += chunk.toString('utf8')));
        socket.on('error', () => {});
        socket.on('close', () => resolve(answer));
      });
    expect(await partly(head('content-length: 9000000'), 0)).toMatch(/^HTTP\/1.1 413 /);
    expect(await partly(head('transfer-encoding: chunked'), 140_000)).toMatch(/^HTTP\/1.1 413 /);
    // A slow one, by a clock that says at once that its 30 s are over.
    const asked: number[] = [];
    const impatient: Clock = {
      ...systemClock,
      after: (ms, then) => {
        if (ms === 30_000) asked.push(ms);
        return systemClock.after(ms === 30_000 ? 100 : ms, then);
      },
    };
    const hasty = await startScene({ clock: impatient });
    try {
      const slow = await new Promise<string>((resolve) => {
        let answer = '';
        const socket = connect(hasty.port, '127.0.0.1', () => socket.write(head('content-length: 100')));
        socket.on('data', (chunk) => (answer += chunk.toString('utf8')));
        socket.on('error', () => {});
        socket.on('close', () => resolve(answer));
      });
      expect(slow).not.toContain('202');
      expect(asked).toEqual([30_000]);
    } finally {
      await hasty.close();
    }
  });
});

describe('delivering', () => {
  it('an item whose answer was lost comes again after 30 s, as one attempt more [REL-012]', async () => {
    await postAll(1);
    await scene.poll(alice);
    skippedMs = 29_000;
    expect(await scene.items(alice)).toEqual([]);
    skippedMs = 30_001;
    expect(await scene.items(alice)).toMatchObject([{ item: itemAt(1), attempt: 2 }]);
    skippedMs = 60_002;
    const [third] = await scene.items(alice);
    expect(third).toMatchObject({ attempt: 3 });
    await scene.settle(alice, { ack: [third?.token] });
    skippedMs = 120_000;
    expect(await scene.items(alice)).toEqual([]);
  });

  it('acknowledging is for tokens of this queue, repeated and late [REL-013]', async () => {
    await scene.register(bob);
    await postAll(1);
    await scene.post(queueAt(bob), 2);
    const [own] = await scene.items(alice);
    const [foreign] = await scene.items(bob);
    skippedMs = 40_000;
    const settle = async (...tokens: unknown[]) => (await scene.settle(alice, { ack: tokens })).json;
    expect(await settle(foreign?.token)).toEqual({ settled: 0, unknown: 1 });
    expect(await settle(own?.token, foreign?.token)).toEqual({ settled: 1, unknown: 1 });
    expect(await settle(own?.token)).toEqual({ settled: 1, unknown: 0 });
    expect(await scene.items(alice)).toEqual([]);
    expect(await scene.items(bob)).toMatchObject([{ item: itemAt(2) }]);
  });

  it('a deferred item comes later, and those behind it now [REL-014]', async () => {
    await postAll(1, 2, 3);
    const [first] = await scene.items(alice, '?wait_ms=0&max=1');
    const defer = [{ token: first?.token, delay_s: 3_600 }];
    expect((await scene.settle(alice, { defer })).json).toEqual({ settled: 1, unknown: 0 });
    const now = await scene.items(alice);
    expect(now.map(({ item }) => item)).toEqual([itemAt(2), itemAt(3)]);
    await scene.settle(alice, { ack: now.map(({ token }) => token) });
    skippedMs = 3_599_000;
    expect(await idsOf()).toEqual([]);
    skippedMs = 3_600_100;
    expect(await idsOf()).toEqual([1]);
    for (const delay_s of [0, 3_601, 1.5, '60'])
      expect((await scene.settle(alice, { defer: [{ token: first?.token, delay_s }] })).status).toBe(400);
  });

  it('an item that nobody settles keeps back no other [REL-015]', async () => {
    await postAll(1);
    expect(await idsOf()).toEqual([1]);
    const found: number[] = [];
    for (let nth = 2; nth <= 101; nth += 1) {
      await postAll(nth);
      const items = await scene.items(alice);
      found.push(...items.map(({ item }) => Number.parseInt(item, 16)));
      if (nth % 2 === 0) await scene.settle(alice, { ack: items.map(({ token }) => token) });
    }
    expect(found).toEqual(Array.from({ length: 100 }, (_, nth) => nth + 2));
  });

  it('holds 256 leased items of a queue, and no more', async () => {
    await postAll(...Array.from({ length: 260 }, (_, nth) => nth + 1));
    const counts = [];
    for (let polls = 0; polls < 5; polls += 1) counts.push((await idsOf('?wait_ms=0&max=64')).length);
    expect(counts).toEqual([64, 64, 64, 64, 0]);
    skippedMs = 30_001;
    expect(await idsOf('?wait_ms=0&max=64')).toEqual(expect.arrayContaining([257, 258, 259, 260]));
  });

  it('first deliveries keep the order of acceptance, a deferred one may come after newer ones [REL-016]', async () => {
    await postAll(3, 1, 2);
    const [first] = await scene.items(alice, '?wait_ms=0&max=1');
    expect(first?.item).toBe(itemAt(3));
    await scene.settle(alice, { defer: [{ token: first?.token, delay_s: 1 }] });
    await postAll(9, 8);
    expect(await idsOf()).toEqual([1, 2, 9, 8]);
    skippedMs = 1_001;
    await postAll(7);
    expect((await idsOf()).toSorted((a, b) => a - b)).toEqual([3, 7]);
  });

  it('an answer ends after passing a mebibyte, with one item at least, and says whether there is more [REL-018]', async () => {
    const body = new Uint8Array(131_072);
    for (let nth = 1; nth <= 10; nth += 1) await scene.post(queue, nth, body);
    const first = await scene.poll(alice, '?wait_ms=0&max=64');
    // Eight reach a mebibyte, the ninth passes it.
    expect((first.json.items as unknown[]).length).toBe(9);
    expect(first.json.more).toBe(true);
    const rest = await scene.poll(alice, '?wait_ms=0&max=64');
    expect((rest.json.items as unknown[]).length).toBe(1);
    expect(rest.json.more).toBe(false);
  });
});

describe('waiting', () => {
  it('answers at once where there is something, else when something comes, else at the end of its time', async () => {
    await postAll(1);
    expect(await idsOf('?wait_ms=55000')).toEqual([1]);
    const waiting = idsOf('?wait_ms=55000');
    await pause(50);
    await postAll(2);
    expect(await waiting).toEqual([2]);
    const begun = performance.now();
    expect(await idsOf('?wait_ms=200')).toEqual([]);
    expect(performance.now() - begun).toBeGreaterThan(190);
  });

  it('a fifth poll of a queue ends the oldest with an empty answer [REL-019]', async () => {
    const order: number[] = [];
    const polls = [];
    for (let nth = 1; nth <= 5; nth += 1) {
      polls.push(
        scene.poll(alice, '?wait_ms=3000').then(({ json }) => {
          order.push(nth);
          return json;
        }),
      );
      await pause(50);
    }
    expect(await polls[0]).toEqual({ items: [], more: false });
    await pause(50);
    expect(order).toEqual([1]);
    // Another queue is another matter.
    await scene.register(bob);
    const others = scene.poll(bob, '?wait_ms=300');
    await pause(50);
    expect(order).toEqual([1]);
    await others;
    await postAll(1);
    const answers = await Promise.all(polls.slice(1));
    expect(answers.filter(({ items }) => (items as unknown[]).length === 1)).toHaveLength(1);
  });

  it('whose client went away is forgotten', async () => {
    const away = new AbortController();
    const lost = scene.poll(alice, '?wait_ms=55000', 1, away.signal).catch(() => 'gone');
    await pause(50);
    away.abort();
    expect(await lost).toBe('gone');
    await pause(50);
    await postAll(1);
    expect(await scene.items(alice)).toMatchObject([{ attempt: 1 }]);
  });
});
