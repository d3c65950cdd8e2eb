// What a registration is handed of the mail that waited for its principal.

import { beforeEach, describe, expect, it } from 'vitest';
import { acknowledge } from '../../src/mailbox/acknowledge.ts';
import { poll } from '../../src/mailbox/poll.ts';
import { receive } from '../../src/mailbox/receive.ts';
import { letter, ok, openScene, post, posted, refused, type Scene, sessionCaller } from './desk.ts';
import { type Client, type Exchange, openExchange } from './exchange.ts';

let desk: Scene;
let router: Exchange;
beforeEach(async () => {
  desk = await openScene();
  router = openExchange(desk);
  desk.onNotify = ({ delivery_id }) => router.notify(delivery_id);
});

const channel = { bell: 'channel', adapter_kind: 'claude-channel' };

/** Bob has been here, and is away. */
async function known(): Promise<void> {
  const host = await router.join('s0');
  await host.leave();
}

/** Lets the drain run, and answers each frame as it comes. */
async function drained(host: Client, answer: 'accept' | 'reject' = 'accept'): Promise<string[]> {
  for (let seen = -1; seen < host.frames.length; ) {
    await desk.clock.advance(0);
    const fresh = host.frames.slice(Math.max(seen, 0));
    seen = Math.max(seen, 0) + fresh.length;
    for (const frame of fresh) await host[answer](frame);
    await desk.clock.advance(0);
    if (host.frames.length === seen) break;
  }
  return host.handed();
}

const sent = async (over: Record<string, unknown> = {}) => (await posted(desk, over)).delivery_id;

describe('a registration', () => {
  it('[SES-109] drains what waits for its principal after the checkpoint, and only that, in event order', async () => {
    await sent();
    await known();
    const first = await sent();
    await sent({ status: 'update' });
    await sent({ quiet: true });
    await sent({ recipient: 'carol' });
    await sent({ project: 'bank' });
    await sent({ intended_session: 'other' });
    const meant = await sent({ intended_session: 's1' });
    await sent({ expires_at: new Date(desk.clock.nowMs() + 1).toISOString() });
    await desk.clock.advance(1);
    refused(await post(desk, letter({ target_kind: 'session', recipient: 's1' })));
    const taken = await posted(desk);
    const messages = [{ sender: 'local', msg_id: taken.message_id }];
    ok(await acknowledge(desk, { project: 'shop', messages }, sessionCaller('s9')));
    const accepted = await sent();
    const former = await router.join('s2', channel);
    await desk.clock.advance(0);
    // Of the three that wait for it, s2 accepts the last one alone.
    await former.reject(former.frames[0]);
    await desk.clock.advance(0);
    await former.accept(former.frames[1]);
    await desk.clock.advance(0);
    expect(former.handed()).toEqual([first, accepted]);
    await former.leave();
    const last = await sent();
    const host = await router.join('s1', channel);
    expect(host.key.drain_scheduled).toBe(true);
    desk.onNotify = () => ({ delivered: false });
    await sent({ status: 'result' });
    expect(await drained(host)).toEqual([first, meant, last]);
  });

  it('[SES-109] drains up to the newest event at its start, in batches of 200', async () => {
    await known();
    desk.onNotify = () => ({ delivered: false });
    const all: string[] = [];
    for (let n = 0; n < 403; n += 1) all.push(await sent());
    const sizes: number[] = [];
    const { read } = desk.store;
    desk.store.read = (work) =>
      read((tx) => {
        const undelivered: typeof tx.waiting.undelivered = (request) => {
          const rows = tx.waiting.undelivered(request);
          if (request.count > 1) sizes.push(rows.length);
          return rows;
        };
        return work({ ...tx, waiting: { ...tx.waiting, undelivered } });
      });
    const host = await router.join('s1', channel);
    await desk.clock.advance(0);
    const later = await sent();
    expect(await drained(host)).toEqual(all);
    expect(sizes).toEqual([200, 200, 3]);
    expect(host.handed()).not.toContain(later);
  });

  it('[SES-109] with a bell that takes notices is rung once for all', async () => {
    await known();
    const all = [await sent(), await sent(), await sent()];
    const host = await router.join('s1');
    expect(host.key.drain_scheduled).toBe(true);
    expect(await drained(host)).toEqual(all.slice(0, 1));
    expect(desk.counts()).toMatchObject({ attempt: 1, host_accept: 1, reservation: 1 });
    const deaf = await router.join('s2', { bell: 'none', adapter_kind: 'poll' });
    expect(deaf.key.drain_scheduled).toBe(false);
  });

  it.each(['s1', 'bob'])(
    '[SES-110] drains no session delivery, whatever the session is called: %s',
    async (id) => {
      await known();
      refused(await post(desk, letter({ target_kind: 'session', recipient: id })));
      const host = await router.join(id, channel);
      expect(host.key.drain_scheduled).toBe(false);
      expect(await drained(host)).toEqual([]);
      expect(desk.counts().attempt).toBe(0);
      expect(ok(receive(desk, { project: 'shop' }, sessionCaller(id))).messages).toHaveLength(1);
    },
  );

  it('[SES-111] that is the first hands over nothing from before it; that mail waits in the inbox', async () => {
    const early = await posted(desk);
    const host = await router.join('s1', channel);
    expect(host.key.drain_scheduled).toBe(false);
    expect(await drained(host)).toEqual([]);
    expect(await router.notify(early.delivery_id)).toMatchObject({ reason: 'before_checkpoint' });
    const { messages } = ok(receive(desk, { project: 'shop' }, sessionCaller('s1')));
    expect(messages.map(({ message_id }) => message_id)).toEqual([early.message_id]);
    await host.leave();
    const again = await router.join('s1', channel);
    expect(await drained(again)).toEqual([]);
  });

  it.each([['channel', channel] as const, ['listener', {}] as const])(
    '[SES-112] with bell %s whose host rejects is handed each delivery once, and again at its next registration',
    async (_, over) => {
      await known();
      const id = await sent();
      const attempts = () =>
        desk.rows('SELECT attempt_number AS n, state FROM attempt WHERE delivery_id = ?', id);
      for (let round = 1; round <= 3; round += 1) {
        const host = await router.join('s1', over);
        await drained(host, 'reject');
        // Far beyond the time-out of a hand-off and the longest reservation; its lease is renewed meanwhile.
        for (let minute = 0; minute < 10; minute += 1) {
          await desk.clock.advance(59_000);
          await host.beat();
        }
        expect(attempts()).toHaveLength(round);
        await host.leave();
        // Beyond the longest reservation.
        await desk.clock.advance(300_000);
        expect(attempts()).toHaveLength(round);
      }
      const host = await router.join('s1', over);
      expect(host.key.drain_scheduled).toBe(true);
    },
  );

  it('[SES-112] whose host rejects more than a batch is handed each once', async () => {
    await known();
    desk.onNotify = () => ({ delivered: false });
    const all: string[] = [];
    for (let n = 0; n < 201; n += 1) all.push(await sent());
    const host = await router.join('s1', channel);
    expect(await drained(host, 'reject')).toEqual(all);
  });

  it('[SES-112] whose host rejects is handed the delivery again where its sender retries', async () => {
    await known();
    const host = await router.join('s1', { ...channel, lease_ms: 300_000 });
    const request = letter();
    for (let round = 1; round <= 3; round += 1) {
      const retried = post(desk, request);
      await desk.clock.advance(0);
      expect(host.frames).toHaveLength(round);
      await host.reject(host.frames.at(-1));
      ok(await retried);
      await desk.clock.advance(20_000);
      await desk.clock.advance(20_000);
      expect(host.frames).toHaveLength(round);
    }
    expect(new Set(host.handed()).size).toBe(1);
    expect(desk.rows('SELECT attempt_number AS n FROM attempt')).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }]);
  });

  it('ends where its connection ends: the next one drains the rest', async () => {
    await known();
    const all = [await sent(), await sent(), await sent()];
    const host = await router.join('s1', channel);
    await desk.clock.advance(0);
    await host.accept(host.frames[0]);
    await desk.clock.advance(0);
    await host.leave();
    await desk.clock.advance(0);
    expect(host.handed()).toEqual(all.slice(0, 2));
    const next = await router.join('s1', channel);
    expect(await drained(next)).toEqual(all.slice(1));
  });
});

describe('replay, retry and drain', () => {
  it('[SES-116] make no second message, event or receipt', async () => {
    await known();
    const request = letter({ target_kind: 'session', recipient: 's1' });
    refused(await post(desk, request));
    const taken = await posted(desk);
    const { next_cursor } = ok(await poll(desk, { project: 'shop', recipient: 'bob' }));
    const messages = [{ sender: 'local', msg_id: taken.message_id }];
    ok(await acknowledge(desk, { project: 'shop', messages }, sessionCaller('s9')));
    await sent();
    const facts = () => {
      const { message, delivery, event, receipt, idempotency } = desk.counts();
      return { message, delivery, event, receipt, idempotency };
    };
    const before = facts();
    expect(before).toMatchObject({ message: 3, delivery: 3, event: 5, receipt: 2 });
    for (let round = 0; round < 2; round += 1) {
      const host = await router.join('s1', channel);
      await drained(host, round === 0 ? 'reject' : 'accept');
      const retried = post(desk, request);
      await drained(host);
      ok(await retried);
      for (let read = 0; read < 2; read += 1)
        expect(
          ok(await poll(desk, { project: 'shop', recipient: 'bob', cursor: String(next_cursor) })).events,
        ).toHaveLength(1);
      await host.leave();
    }
    expect(facts()).toEqual(before);
  });
});
