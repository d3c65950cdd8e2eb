// What is on its way to another machine: kept before it is said to be, signed afresh each time, tried on a schedule, and ended only by
// what its sender is told of.

import { beforeEach, describe, expect, it } from 'vitest';
import { verifyRecord } from '../../src/crypto/record.ts';
import { openItem } from '../../src/crypto/sealed-item.ts';
import { receipts } from '../../src/mailbox/receipts.ts';
import { receive } from '../../src/mailbox/receive.ts';
import { discard, pending } from '../../src/peers/pending.ts';
import { replaceQueue } from '../../src/peers/place.ts';
import { RelayFailure } from '../../src/ports/relay.ts';
import { limits } from '../../src/protocol/limits.ts';
import { readFields } from '../../src/protocol/wire/decode.ts';
import type { WireRecord } from '../../src/protocol/wire/record.ts';
import { attach, ok, post, refused, sessionCaller } from '../contract/desk.ts';
import { type Machine, openPair, type World } from './machines.ts';
import type { ModelRelay, Posted } from './model-relay.ts';

const secondMs = 1_000;
const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

let world: World;
let relay: ModelRelay;
let alice: Machine;
let bob: Machine;

beforeEach(async () => {
  ({ world, relay, alice, bob } = await openPair());
});

/** What an item that was posted says to whom it is for. */
function recordIn({ body, queue }: Posted, to: Machine): WireRecord {
  const record = openItem({ item: body, seed: to.identity.seed, queueId: queue.split('.')[1] as string });
  if (typeof record === 'string') throw new Error(record);
  expect(verifyRecord(record)).toBe(true);
  const fields = readFields(record);
  if (typeof fields === 'string') throw new Error(fields);
  return fields;
}

const messagesTo = (machine: Machine): WireRecord[] =>
  relay.posts
    .filter(({ queue }) => queue === machine.queue)
    .map((one) => recordIn(one, machine))
    .filter(({ type }) => type === 'message');

const send = async (over: Record<string, unknown> = {}) => ok(await post(alice, { peer: 'bob', ...over }));

const factsOf = (message_id: string, recipient = 'bob') =>
  ok(receipts(alice, { project: 'shop', recipient, message_id }));

const kindsOf = (message_id: string): string[] =>
  factsOf(message_id).receipts.map(({ receipt_kind, value }) => `${receipt_kind} ${value}`);

const inboxOf = (machine: Machine, recipient = 'bob') =>
  ok(receive(machine, { project: 'shop', recipient }, { transport: 'cli', source_host: 'cli' })).messages;

/** Nothing but the message's own way: whoever listens at the relay was told to keep quiet. */
function onlyBob(): void {
  bob.start();
}

describe('a send to a peer', () => {
  it('[MSG-067, PEER-062] is durable before it succeeds, never waits, and goes out after a restart', async () => {
    relay.breakDown();
    alice.start();
    const sent = await send();
    expect(sent).toMatchObject({ delivery_state: 'pending', peer: 'bob' });
    expect(sent).not.toHaveProperty('native_delivery');
    const stored = await alice.secondStore();
    expect(stored.read((tx) => tx.outbox.of(sent.message_id))).toMatchObject({
      peer_key: bob.key,
      ended_at: null,
    });
    // The entry holds the content, and nothing that was signed.
    expect(alice.rows('SELECT * FROM outbox').flatMap(Object.values).join(' ')).not.toMatch(/[\w-]{86}/);
    for (const [field, value] of Object.entries({
      fallback_to_principal: true,
      expected_generation: 1,
      reply_wait_ms: 0,
    })) {
      const session = { target_kind: 'session', recipient: 's1' };
      expect(refused(await post(alice, { peer: 'bob', ...session, [field]: value }))).toMatchObject({
        code: 'invalid_request',
        details: { field },
      });
    }
    await alice.stop();
    relay.down = undefined;
    onlyBob();
    alice.start();
    await world.pass(5 * secondMs);
    expect(inboxOf(bob)).toMatchObject([{ payload: 'hello bob' }]);
  });

  it('[MSG-065] resolves petname, key and self, in any case; an unknown name and one that is asked store nothing', async () => {
    for (const peer of ['bob', 'BoB', bob.key]) expect((await send({ peer })).peer).toBe('bob');
    expect((await send({ peer: 'SELF' })).peer).toBe('self');
    await alice.store.write((tx) =>
      tx.pairing.asked.put({ peer_key: 'k'.repeat(43), request_id: 'r', name: 'carol', asked_ms: 0 }),
    );
    const before = alice.counts();
    expect(refused(await post(alice, { peer: 'dave' })).code).toBe('unknown_peer');
    expect(refused(await post(alice, { peer: 'Carol' })).code).toBe('peer_not_paired');
    expect(alice.counts()).toEqual(before);
    onlyBob();
    alice.start();
    await world.pass(5 * secondMs);
    const [got] = inboxOf(bob);
    expect(got).toMatchObject({ project: 'shop', recipient: 'bob', target_kind: 'principal' });
  });

  it('[PEER-071] under the same key is the same message, whatever became of it; other content is a conflict', async () => {
    const first = await send({ idempotency_key: 'k' });
    onlyBob();
    alice.start();
    await world.pass(5 * secondMs);
    expect((await send({ idempotency_key: 'k' })).message_id).toBe(first.message_id);
    alice.peers = [];
    // What was sent before is answered, though the peer is none any more.
    expect(refused(await post(alice, { peer: 'bob', idempotency_key: 'other' })).code).toBe('unknown_peer');
    expect(ok(await post(alice, { peer: bob.key, idempotency_key: 'k' })).message_id).toBe(first.message_id);
    expect(refused(await post(alice, { peer: bob.key, idempotency_key: 'k', payload: 'other' })).code).toBe(
      'idempotency_conflict',
    );
    expect(refused(await post(alice, { idempotency_key: 'k' })).code).toBe('idempotency_conflict');
    expect(inboxOf(bob)).toHaveLength(1);
  });

  it('[PEER-069] takes a payload of 65,536 bytes and no more', async () => {
    const payload = 'x'.repeat(65_536 - 2);
    const sent = await send({ payload });
    expect(refused(await post(alice, { peer: 'bob', payload: `${payload}x` })).code).toBe(
      'payload_too_large',
    );
    onlyBob();
    alice.start();
    await world.pass(5 * secondMs);
    expect(inboxOf(bob)[0]?.payload).toBe(payload);
    expect(kindsOf(sent.message_id)).toContain('stored unknown');
  });

  it('is in no inbox of this machine, and nobody here can fetch or answer for it', async () => {
    await attach(alice, 's1');
    const { message_id } = await send();
    const scope = { project: 'shop', recipient: 'bob', message_id };
    expect(ok(receive(alice, { project: 'shop' }, sessionCaller('s1'))).messages).toEqual([]);
    const { fetchMessage } = await import('../../src/mailbox/fetch.ts');
    const { intake } = await import('../../src/mailbox/intake.ts');
    expect(refused(fetchMessage(alice, scope)).code).toBe('not_available');
    expect(
      refused(await intake(alice, { ...scope, state: 'fetched', idempotency_key: 'i' }, sessionCaller('s1')))
        .code,
    ).toBe('not_available');
    expect(factsOf(message_id).delivery_state).toBe('pending');
  });
});

describe('an attempt', () => {
  it('[PEER-063] is signed afresh with the same id: held for 25 hours, it is accepted', async () => {
    relay.onPost = () => relay.fail(503, 'store_unavailable');
    alice.start();
    await world.pass(secondMs);
    const sent = await send();
    await world.pass(25 * hourMs);
    relay.onPost = () => undefined;
    onlyBob();
    await world.pass(400 * secondMs);
    expect(inboxOf(bob)).toHaveLength(1);
    const tries = messagesTo(bob);
    expect(new Set(tries.map(({ id }) => id)).size).toBe(1);
    expect(new Set(tries.map(({ time_ms }) => time_ms)).size).toBe(tries.length);
    expect((tries.at(-1)?.time_ms ?? 0) - (tries[0]?.time_ms ?? 0)).toBeGreaterThan(25 * hourMs);
    expect(kindsOf(sent.message_id)).toContain('stored unknown');
  });

  it('[PEER-064] comes after 1, 2, 4 … 300 s until a relay takes it, then after 60 s, 5 min, 15 min, and hourly', async () => {
    const at: number[] = [];
    const note = (posted: Posted): void => {
      if (posted.queue === bob.queue) at.push(world.clock.nowMs());
    };
    relay.onPost = (posted) => {
      note(posted);
      return relay.fail(503, 'store_unavailable');
    };
    alice.start();
    // Its queue is there, and nobody drains it.
    await relay.client(bob.identity).register(bob.queue, { door: false });
    await world.pass(secondMs);
    await send();
    await world.pass(30 * 60 * secondMs);
    const waits = (): number[] => at.slice(1).map((ms, nth) => (ms - (at[nth] as number)) / secondMs);
    for (const [nth, wait] of waits().entries()) {
      const least = Math.min(2 ** nth, 300);
      expect(wait).toBeGreaterThanOrEqual(least);
      expect(wait).toBeLessThanOrEqual(least * 1.2 + 1);
    }
    expect(waits().length).toBeGreaterThan(9);
    at.length = 0;
    relay.onPost = (posted) => {
      note(posted);
      return undefined;
    };
    await world.pass(5 * hourMs);
    expect(
      waits()
        .slice(0, 6)
        .map((wait) => Math.round(wait / 60)),
    ).toEqual([1, 5, 15, 60, 60, 60]);
  });

  it('[PEER-064] comes at once where the device of the peer turns live', async () => {
    alice.start();
    await relay.client(bob.identity).register(bob.queue, { door: false });
    relay.onPost = () => 'lost';
    await world.pass(secondMs);
    await send();
    await world.pass(10 * 60 * secondMs);
    relay.onPost = () => undefined;
    bob.start();
    await world.pass(70 * secondMs);
    expect(inboxOf(bob)).toHaveLength(1);
  });

  it('[MSG-068] is repeated until the receiver says that it is stored: of four copies it keeps one', async () => {
    let lost = 0;
    relay.onPost = ({ queue }) => {
      if (queue !== bob.queue || lost === 3) return undefined;
      lost += 1;
      return 'lost';
    };
    alice.start();
    onlyBob();
    await world.pass(secondMs);
    const sent = await send();
    await world.pass(2 * hourMs);
    expect(lost).toBe(3);
    expect(inboxOf(bob)).toHaveLength(1);
    expect(kindsOf(sent.message_id)).toEqual([`relay_accept ${relay.origin}`, 'stored unknown']);
    const before = messagesTo(bob).length;
    await world.pass(5 * hourMs);
    expect(messagesTo(bob)).toHaveLength(before);
  });

  it('[PEER-067] that one queue, or one item, refuses for good holds up no other; each queue gets its mail in order', async () => {
    const carol = await world.machine('carol');
    await world.befriend(alice, carol);
    const good = await send({ payload: 'one' });
    await alice.store.write((tx) => tx.outbox.route(good.message_id, bob.device));
    onlyBob();
    carol.start();
    await world.pass(secondMs);
    let refusals = 0;
    relay.onPost = (posted) => {
      if (posted.queue !== bob.queue) return undefined;
      const record = recordIn(posted, bob);
      if (record.type !== 'message' || !record.fields.payload.includes('huge')) return undefined;
      refusals += 1;
      return relay.fail(413, 'too_large');
    };
    const huge = await send({ payload: 'huge' });
    for (const payload of ['two', 'three', 'four']) await send({ payload });
    await send({ peer: 'carol', recipient: 'carol', payload: 'to carol' });
    alice.start();
    await world.pass(10 * secondMs);
    expect(inboxOf(bob).map(({ payload }) => payload)).toEqual(['one', 'two', 'three', 'four']);
    expect(inboxOf(carol, 'carol')).toHaveLength(1);
    expect(refusals).toBe(1);
    expect(kindsOf(huge.message_id)).toEqual(['refused relay_refused']);
    expect(factsOf(huge.message_id).delivery_state).toBe('pending');
  });

  it('[PEER-067] to a queue that no relay knows is parked, and given up after seven days', async () => {
    relay.queues.delete(bob.queue);
    alice.start();
    await world.pass(secondMs);
    const lost = await send({ expires_at: new Date(world.clock.nowMs() + 20 * dayMs).toISOString() });
    await world.pass(dayMs);
    expect(ok(await Promise.resolve(pending(alice))).pending).toMatchObject([
      {
        message_id: lost.message_id,
        peer: 'bob',
        attempts: expect.any(Number),
        last_error: expect.stringContaining('queue_unknown'),
      },
    ]);
    expect(kindsOf(lost.message_id)).toEqual([]);
    await alice.stop();
    await world.pass(6 * dayMs);
    alice.start();
    await world.pass(hourMs);
    expect(kindsOf(lost.message_id)).toEqual(['refused relay_refused']);
  }, 60_000);
});

describe('the 404 of a server that is no relay', () => {
  it('says nothing of a queue: mail waits for that queue, also where another machine of the peer was heard of since', async () => {
    const elsewhere = new RelayFailure('foreign', relay.origin, `${relay.origin} is no relay`, {
      status: 404,
    });
    await relay.client(bob.identity).register(bob.queue, { door: false });
    const sent = await send({ expires_at: new Date(world.clock.nowMs() + hourMs).toISOString() });
    await alice.store.write((tx) => tx.outbox.route(sent.message_id, bob.device));
    await alice.store.write((tx) =>
      tx.devices.heard({
        peer_key: bob.key,
        device: 'f'.repeat(32),
        heard_ms: world.clock.nowMs() + secondMs,
      }),
    );
    relay.onPost = () => elsewhere;
    alice.start();
    await world.pass(hourMs + 60 * secondMs);
    expect(kindsOf(sent.message_id)).toEqual(['expired expired']);
    expect(new Set(relay.posts.map(({ queue }) => queue))).toEqual(new Set([bob.queue]));
  }, 60_000);

  it('ends no queue that was left: it is purged once the relay is there', async () => {
    const { door } = alice;
    const old = `${alice.key}.${door}`;
    await relay.client(alice.identity).register(old, { door: true });
    const at = new Date(world.clock.nowMs()).toISOString();
    await alice.store.write((tx) => replaceQueue(tx, { ...alice, of: 'door', at }));
    relay.down = new RelayFailure('foreign', relay.origin, `${relay.origin} is no relay`, { status: 404 });
    alice.start();
    await world.pass(hourMs);
    relay.down = undefined;
    await world.pass(120 * secondMs);
    expect([...relay.queues.keys()]).not.toContain(old);
    expect(alice.store.read((tx) => tx.places.retired())).toEqual([]);
  });
});

describe('a clock that is set back', () => {
  it('puts nothing off: what was to go out by the old time goes out now', async () => {
    relay.breakDown();
    alice.start();
    await world.pass(secondMs);
    const sent = await send();
    await world.pass(20 * secondMs);
    world.clock.jump(-hourMs);
    relay.down = undefined;
    onlyBob();
    await world.pass(100 * secondMs);
    expect(kindsOf(sent.message_id)[0]).toBe(`relay_accept ${relay.origin}`);
  });

  it('nor does one that is set back while the router is off', async () => {
    relay.onPost = () => 'lost';
    onlyBob();
    alice.start();
    await world.pass(secondMs);
    const sent = await send();
    await world.pass(hourMs);
    await alice.stop();
    world.clock.jump(-20 * dayMs);
    relay.onPost = () => undefined;
    alice.start();
    await world.pass(10 * secondMs);
    expect(inboxOf(bob)).toHaveLength(1);
    expect(kindsOf(sent.message_id)).toContain('stored unknown');
  });
});

describe('an entry', () => {
  it('[PEER-065, PEER-066] ends by expiry, seven days after it was sent unless its sender says otherwise', async () => {
    relay.breakDown();
    alice.start();
    const usual = await send();
    const nowMs = world.clock.nowMs();
    expect(usual.expires_at).toBe(new Date(nowMs + 7 * dayMs).toISOString());
    const at = (ms: number) => new Date(nowMs + ms).toISOString();
    for (const ms of [limits.peerExpiryMsMin - 1, limits.peerExpiryMsMax + 1])
      expect(refused(await post(alice, { peer: 'bob', expires_at: at(ms) })).code).toBe('invalid_request');
    const soon = await send({ expires_at: at(60_000) });
    const longest = await send({ expires_at: at(2_592_000_000) });
    await world.pass(59 * secondMs);
    expect(kindsOf(soon.message_id)).toEqual([]);
    await world.pass(62 * secondMs);
    expect(kindsOf(soon.message_id)).toEqual(['expired expired']);
    expect(factsOf(soon.message_id).delivery_state).toBe('pending');
    expect(kindsOf(usual.message_id)).toEqual([]);
    await alice.stop();
    await world.pass(7 * dayMs);
    alice.start();
    await world.pass(40 * secondMs);
    expect(kindsOf(usual.message_id)).toEqual(['expired expired']);
    expect(kindsOf(longest.message_id)).toEqual([]);
  });

  it('[PEER-066] that has expired when it comes is refused by its receiver, which its sender is told', async () => {
    onlyBob();
    alice.start();
    await world.pass(secondMs);
    await bob.stop();
    const sent = await send({ expires_at: new Date(world.clock.nowMs() + 120_000).toISOString() });
    await world.pass(30 * secondMs);
    expect(kindsOf(sent.message_id)).toEqual([`relay_accept ${relay.origin}`]);
    await alice.stop();
    // A relay that keeps it for longer than it was told.
    for (const item of relay.queues.get(bob.queue)?.items ?? []) item.untilMs += hourMs;
    await world.pass(100 * secondMs);
    bob.start();
    await world.pass(5 * secondMs);
    expect(inboxOf(bob)).toEqual([]);
    alice.start();
    await world.pass(60 * secondMs);
    expect(kindsOf(sent.message_id)).toContain('refused expired');
  });

  it('[PEER-065, INB-090] that its sender discards goes out no more, and says so; it is listed until then', async () => {
    relay.breakDown();
    alice.start();
    await world.pass(secondMs);
    const sent = await send();
    await world.pass(5 * secondMs);
    expect(pending(alice).pending).toMatchObject([
      {
        message_id: sent.message_id,
        peer: 'bob',
        age_ms: 5_000,
        // At once, after a second, and after two more.
        attempts: 3,
        last_error: expect.stringContaining(relay.origin),
      },
    ]);
    expect(refused(await discard(alice, 'msg_other')).code).toBe('not_found');
    ok(await discard(alice, sent.message_id));
    expect(refused(await discard(alice, sent.message_id)).code).toBe('not_found');
    expect(pending(alice).pending).toEqual([]);
    expect(kindsOf(sent.message_id)).toEqual(['refused discarded']);
    relay.down = undefined;
    onlyBob();
    await world.pass(hourMs);
    expect(inboxOf(bob)).toEqual([]);
    expect(factsOf(sent.message_id).delivery_state).toBe('pending');
  });

  it('[PEER-092] for a machine that seals by nothing known here is not sent, and says so, until its route names what is', async () => {
    const hear = (suites: number[], heard_ms: number) =>
      alice.store.write((tx) =>
        tx.devices.heard({
          peer_key: bob.key,
          device: bob.device,
          heard_ms,
          route: { relays: [relay.origin], suites },
        }),
      );
    await relay.client(bob.identity).register(bob.queue, { door: false });
    await hear([2], world.clock.nowMs() + 1);
    alice.start();
    await send();
    await world.pass(30 * secondMs);
    expect(relay.posts.filter(({ queue }) => queue === bob.queue)).toEqual([]);
    expect(pending(alice).pending).toMatchObject([
      { last_error: 'the machine of the peer knows no way of sealing that this release knows' },
    ]);
    await hear([2, 1], world.clock.nowMs() + 1);
    await world.pass(400 * secondMs);
    expect(relay.posts.filter(({ queue }) => queue === bob.queue).length).toBeGreaterThan(0);
    expect(pending(alice).pending).toEqual([]);
  });

  it('is counted where it is not listed; what a relay took is in neither', async () => {
    await relay.client(bob.identity).register(bob.queue, { door: false });
    alice.start();
    await world.pass(secondMs);
    await send();
    await world.pass(secondMs);
    expect(pending(alice)).toEqual({ pending: [] });
    relay.breakDown();
    for (let nth = 0; nth < limits.pendingCountMax + 2; nth += 1) await send({ idempotency_key: `k${nth}` });
    const { pending: listed, omitted } = pending(alice);
    expect([listed.length, omitted]).toEqual([limits.pendingCountMax, 2]);
  });

  it('[PEER-065] to a peer that was removed ends, and keeps the state that it had', async () => {
    relay.breakDown();
    alice.start();
    await world.pass(secondMs);
    const sent = await send();
    const listed = alice.peers;
    alice.peers = [];
    await world.pass(9 * 60 * secondMs);
    // An editor's slip of some minutes ends nothing, and sends nothing.
    alice.peers = listed;
    await world.pass(40 * secondMs);
    alice.peers = [];
    const posts = relay.posts.length;
    await world.pass(9 * 60 * secondMs);
    expect([kindsOf(sent.message_id), relay.posts.length]).toEqual([[], posts]);
    await world.pass(2 * 60 * secondMs);
    expect(kindsOf(sent.message_id)).toEqual(['refused peer_removed']);
    expect(factsOf(sent.message_id).receipts[0]).toMatchObject({ source: 'outbox' });
    expect(factsOf(sent.message_id).delivery_state).toBe('pending');
  });

  it('[INB-102] that is pending stays listed over a restart, and is delivered later', async () => {
    relay.breakDown();
    alice.start();
    const sent = await send();
    await world.pass(5 * secondMs);
    await alice.stop();
    alice.start();
    await world.pass(5 * secondMs);
    expect(pending(alice).pending.map(({ message_id }) => message_id)).toEqual([sent.message_id]);
    relay.down = undefined;
    onlyBob();
    await world.pass(400 * secondMs);
    expect(pending(alice).pending).toEqual([]);
    expect(inboxOf(bob)).toHaveLength(1);
  });

  it('[MSG-107, INB-154, MSG-170] that a relay took says no more of its receiver', async () => {
    await relay.client(bob.identity).register(bob.queue, { door: false });
    alice.start();
    await world.pass(secondMs);
    const sent = await send();
    await world.pass(hourMs);
    expect(kindsOf(sent.message_id)).toEqual([`relay_accept ${relay.origin}`]);
    expect(factsOf(sent.message_id).delivery_state).toBe('bus_accepted');
    const { status } = await import('../../src/mailbox/status.ts');
    expect(
      ok(status(alice, { msg_id: sent.message_id }, { transport: 'cli', source_host: 'cli' })),
    ).toMatchObject({
      direction: 'out',
      note: 'receiver acknowledgement is unknown',
    });
  });
});

describe('the outbox', () => {
  it('[PEER-068] takes 10,000 entries and 256 MiB; beyond, a send is refused and nothing is dropped', async () => {
    const sent = await send();
    await alice.store.write((tx) => {
      const message = tx.messages.byId(sent.message_id)?.message;
      if (message === undefined) throw new Error('it is there');
      for (let nth = 1; nth < 9_999; nth += 1) {
        const id = `m${nth}`;
        tx.messages.insert({
          message: { ...message, message_id: id, delivery_id: `d${nth}`, event_id: `e${nth}` },
          held: false,
          payload: '""',
          payload_sha256: '',
        });
        tx.outbox.insert({
          message_id: id,
          peer_key: bob.key,
          wire_id: id,
          secret: '',
          bytes: 2,
          expires_ms: 1e15,
        });
      }
    });
    await send();
    expect(refused(await post(alice, { peer: 'bob' }))).toMatchObject({
      code: 'outbox_full',
      details: { count: 10_000 },
    });
    expect(alice.rows('SELECT count(*) AS n FROM outbox WHERE ended_at IS NULL')[0]?.n).toBe(10_000);
    await alice.store.write((tx) => {
      for (let nth = 1; nth < 10; nth += 1) tx.outbox.end(`m${nth}`, '2026-01-01T00:00:00.000Z');
    });
    const last = (await send({ payload: 'x' })).message_id;
    const held = Number(alice.rows('SELECT sum(bytes) AS n FROM outbox WHERE ended_at IS NULL')[0]?.n);
    // Room is left for three bytes, which are one letter in quotes.
    await alice.store.write((tx) => {
      const message = tx.messages.byId(last)?.message;
      if (message === undefined) throw new Error('it is there');
      tx.messages.insert({
        message: { ...message, message_id: 'big', delivery_id: 'big', event_id: 'big' },
        held: false,
        payload: '""',
        payload_sha256: '',
      });
      const bytes = 268_435_456 - held - 3;
      tx.outbox.insert({
        message_id: 'big',
        peer_key: bob.key,
        wire_id: 'big',
        secret: '',
        bytes,
        expires_ms: 1e15,
      });
    });
    expect(refused(await post(alice, { peer: 'bob', payload: 'xy' })).code).toBe('outbox_full');
    await send({ payload: 'x' });
    expect(refused(await post(alice, { peer: 'bob', payload: '' })).code).toBe('outbox_full');
  }, 60_000);
});
