// What goes wrong at a bad moment: a clock set back, a relay that forgets, a queue that was left, a removal in the middle of a round.
// Nothing stays on its way for good, and nothing goes out that should not any more.

import { beforeEach, describe, expect, it } from 'vitest';
import { openItem } from '../../src/crypto/sealed-item.ts';
import { acknowledge } from '../../src/mailbox/acknowledge.ts';
import { dispose } from '../../src/mailbox/dispose.ts';
import { receipts } from '../../src/mailbox/receipts.ts';
import { receive } from '../../src/mailbox/receive.ts';
import { putRoutes } from '../../src/peers/control.ts';
import { discard } from '../../src/peers/pending.ts';
import { replaceQueue } from '../../src/peers/place.ts';
import { RelayFailure } from '../../src/ports/relay.ts';
import type { Store } from '../../src/ports/store.ts';
import { Fault, Refusal } from '../../src/protocol/errors.ts';
import { readFields } from '../../src/protocol/wire/decode.ts';
import { attach, ok, post, sessionCaller } from '../contract/desk.ts';
import { forged, freshId, message, openGate, toldBy } from './forge.ts';
import { cli, type Machine, noSuchFile, openPair, type World } from './machines.ts';
import type { ModelRelay, Posted } from './model-relay.ts';

const secondMs = 1_000;
const minuteMs = 60_000;
const hourMs = 3_600_000;

let world: World;
let relay: ModelRelay;
let alice: Machine;
let bob: Machine;

beforeEach(async () => {
  ({ world, relay, alice, bob } = await openPair());
});

const send = async (over: Record<string, unknown> = {}) => ok(await post(alice, { peer: 'bob', ...over }));

const inboxOf = (machine: Machine) =>
  ok(receive(machine, { project: 'shop', recipient: 'bob' }, cli)).messages;

const kindsOf = (message_id: string): string[] =>
  ok(receipts(alice, { project: 'shop', recipient: 'bob', message_id })).receipts.map(
    ({ receipt_kind, value }) => `${receipt_kind} ${value}`,
  );

/** Posts so far to queues of the machine. */
const postsTo = (machine: Machine): Posted[] =>
  relay.posts.filter(({ queue }) => queue.startsWith(`${machine.key}.`));

/** What an item that was posted says to whom it is for. */
function recordIn({ body, queue }: Posted, to: Machine) {
  const bytes = openItem({ item: body, seed: to.identity.seed, queueId: queue.split('.')[1] as string });
  const record = typeof bytes === 'string' ? bytes : readFields(bytes);
  if (typeof record === 'string') throw new Error(record);
  return record;
}

/** Its queue is there, and nobody drains it. */
const register = (machine: Machine) =>
  relay.client(machine.identity).register(machine.queue, { door: false });

/** Another queue in the place of the one that its peers know, as at a removal; its next router tells them. */
const leaveQueue = async (machine: Machine) => {
  await machine.store.write((tx) =>
    replaceQueue(tx, {
      random: machine.random,
      key: machine.key,
      of: 'device',
      at: new Date(world.clock.nowMs()).toISOString(),
    }),
  );
};

/** Both routers run, and `bob` has told where he is. */
async function bothRun(): Promise<void> {
  alice.start();
  bob.start();
  await world.pass(2 * secondMs);
}

const unusable = () => new Fault('store_full', 'the disk is full');

describe('a message on its way', () => {
  it('is tried again within a minute though the clock was set back by a day', async () => {
    relay.onPost = () => relay.fail(503, 'store_unavailable');
    await bothRun();
    // The second waits for the first.
    for (const payload of ['one', 'two']) await send({ payload });
    await world.pass(2 * minuteMs);
    world.clock.jump(-24 * hourMs);
    relay.onPost = () => undefined;
    await world.pass(minuteMs + secondMs);
    expect(inboxOf(bob).map(({ payload }) => payload)).toEqual(['one', 'two']);
  });

  it('is held up for an hour at most, whatever time a relay names', async () => {
    const day = { status: 429, code: 'rate_limited', retryAfterMs: 24 * hourMs };
    await bothRun();
    relay.onPost = ({ queue }) =>
      queue === bob.queue ? new RelayFailure('refused', relay.origin, 'not now', day) : undefined;
    await send();
    await world.pass(secondMs);
    const before = postsTo(bob).length;
    await world.pass(hourMs - minuteMs);
    expect(postsTo(bob)).toHaveLength(before);
    relay.onPost = () => undefined;
    await world.pass(2 * minuteMs);
    expect(inboxOf(bob)).toHaveLength(1);
  });

  it('stays with its machine where the relay lost its store, which that machine registers at again', async () => {
    await bothRun();
    await bob.stop();
    await send();
    await world.pass(secondMs);
    // Another machine of the same key was heard of later, at a queue that is known.
    const other = `${bob.key}.${'f'.repeat(32)}`;
    await alice.store.write((tx) =>
      tx.devices.heard({
        peer_key: bob.key,
        device: 'f'.repeat(32),
        heard_ms: world.clock.nowMs(),
        route: { relays: [], suites: [1] },
      }),
    );
    relay.queues.clear();
    await relay.client(bob.identity).register(other, { door: false });
    await world.pass(2 * minuteMs);
    bob.start();
    await world.pass(10 * minuteMs);
    expect(inboxOf(bob)).toHaveLength(1);
    expect(relay.depth(other)).toBe(0);
  });

  it('follows its peer to another queue though a relay took it for the one that was left', async () => {
    await bothRun();
    await bob.stop();
    await send();
    await world.pass(5 * secondMs);
    expect(relay.depth(bob.queue)).toBe(1);
    await leaveQueue(bob);
    // It is purged before it is drained.
    relay.queues.delete(bob.queue);
    bob.start();
    await world.pass(40 * minuteMs);
    expect(inboxOf(bob)).toHaveLength(1);
  });

  it('goes out no more once it has expired, though nobody has noted that yet', async () => {
    await register(bob);
    relay.onPost = () => relay.fail(503, 'store_unavailable');
    alice.start();
    await world.pass(secondMs);
    const sent = await send({ expires_at: new Date(world.clock.nowMs() + 65 * secondMs).toISOString() });
    await world.pass(2 * secondMs);
    await alice.store.write((tx) => {
      const waiting = tx.outbox.post(sent.message_id, relay.origin);
      if (waiting === undefined) throw new Error('it waits');
      tx.outbox.putPost({ ...waiting, next_ms: (waiting.next_ms as number) + 64 * secondMs });
    });
    relay.onPost = () => undefined;
    await world.pass(3 * minuteMs);
    expect(relay.depth(bob.queue)).toBe(0);
    expect(kindsOf(sent.message_id)).toEqual(['expired expired']);
  });

  it('goes out no more where its sender discards it while others of the round are posted', async () => {
    await register(bob);
    const [first, second] = [await send({ payload: 'one' }), await send({ payload: 'two' })];
    relay.onPost = async () => {
      await discard(alice, second.message_id);
      return undefined;
    };
    alice.start();
    await world.pass(10 * secondMs);
    const wireId = (id: string) => alice.store.read((tx) => tx.outbox.of(id)?.wire_id);
    const ids = new Set(postsTo(bob).map((one) => recordIn(one, bob).id));
    expect([...ids]).toEqual([wireId(first.message_id)]);
    expect(kindsOf(second.message_id)).toEqual(['refused discarded']);
  });
});

describe('to a peer that was removed', () => {
  it('no further message of the round goes out', async () => {
    await register(bob);
    for (const payload of ['one', 'two', 'three']) await send({ payload });
    relay.onPost = () => {
      alice.peers = [];
      return undefined;
    };
    alice.start();
    await world.pass(2 * minuteMs);
    expect(postsTo(bob)).toHaveLength(1);
  });

  it('no further receipts of the round go out', async () => {
    await register(alice);
    await bob.store.write((tx) => {
      for (let nth = 0; nth < 70; nth += 1)
        tx.factsOut.add({
          peer_key: alice.key,
          device: alice.device,
          wire_id: `00000000-0000-4000-8000-${String(nth).padStart(12, '0')}`,
          fact: 'stored',
          detail: 'unknown',
          at_ms: world.clock.nowMs(),
        });
    });
    relay.onPost = () => {
      bob.peers = [];
      return undefined;
    };
    bob.start();
    await world.pass(2 * minuteMs);
    expect(postsTo(alice)).toHaveLength(1);
  });

  it('no question goes out', async () => {
    await bothRun();
    await send();
    await world.pass(5 * secondMs);
    await alice.stop();
    alice.peers = [];
    alice.start();
    const before = postsTo(bob).length;
    await world.pass(5 * minuteMs);
    expect(postsTo(bob)).toHaveLength(before);
  });

  it('no question goes to the next relay where the one before did not take it', async () => {
    const second = world.relay('http://second.test');
    await bothRun();
    await send();
    await world.pass(5 * secondMs);
    await alice.store.write((tx) =>
      tx.devices.heard({
        peer_key: bob.key,
        device: bob.device,
        heard_ms: world.clock.nowMs(),
        route: { relays: [relay.origin, second.origin], suites: [1] },
      }),
    );
    relay.onPost = ({ queue }) => {
      if (queue !== bob.queue) return undefined;
      alice.peers = [];
      return relay.fail(503, 'store_unavailable');
    };
    const before = second.posts.length;
    await alice.stop();
    alice.start();
    await world.pass(5 * minuteMs);
    expect(alice.peers).toEqual([]);
    expect(second.posts).toHaveLength(before);
  });

  it('no route goes out', async () => {
    await register(bob);
    alice.start();
    await world.pass(secondMs);
    await alice.store.write((tx) =>
      putRoutes(tx, { random: alice.random, nowMs: world.clock.nowMs() }, [bob.key]),
    );
    alice.peers = [];
    await world.pass(10 * minuteMs);
    expect(postsTo(bob)).toEqual([]);
  });

  it('nothing goes out while nobody can read who is one, and all of it afterwards', async () => {
    await bothRun();
    relay.breakDown();
    await send();
    await alice.store.write((tx) =>
      putRoutes(tx, { random: alice.random, nowMs: world.clock.nowMs() }, [bob.key]),
    );
    await world.pass(secondMs);
    alice.policyFault = noSuchFile;
    relay.down = undefined;
    await world.pass(10 * minuteMs);
    expect(postsTo(bob)).toEqual([]);
    alice.policyFault = undefined;
    await world.pass(6 * minuteMs);
    expect(inboxOf(bob)).toHaveLength(1);
    expect(postsTo(bob).map((one) => recordIn(one, bob).type)).toContain('route');
  });
});

describe('a queue that was left', () => {
  it('is purged again where a registration of it arrives late', async () => {
    await bothRun();
    await leaveQueue(alice);
    alice.wake.touch();
    await world.pass(5 * secondMs);
    expect(relay.queues.has(alice.queue)).toBe(false);
    await register(alice);
    await world.pass(5 * minuteMs);
    expect(relay.queues.has(alice.queue)).toBe(false);
    expect(alice.store.read((tx) => tx.places.retired())).toEqual([]);
  });
});

describe('a route', () => {
  it('is told though the list of peers could not be read as the router started', async () => {
    await bothRun();
    await alice.stop();
    // Told before, at another place.
    await alice.store.write((tx) => tx.pairing.announce('elsewhere'));
    alice.policyFault = new Refusal('store_unreadable', 'peers.json: line 3: the text is no JSON here');
    alice.start();
    await world.pass(minuteMs);
    const before = postsTo(bob).length;
    alice.policyFault = undefined;
    await world.pass(minuteMs);
    expect(
      postsTo(bob)
        .slice(before)
        .map((one) => recordIn(one, bob).type),
    ).toEqual(['route']);
  });

  it('is told within a minute though the clock was set back by a day', async () => {
    await bothRun();
    relay.onPost = () => relay.fail(503, 'store_unavailable');
    await alice.store.write((tx) =>
      putRoutes(tx, { random: alice.random, nowMs: world.clock.nowMs() }, [bob.key]),
    );
    alice.wake.touch();
    await world.pass(2 * minuteMs);
    world.clock.jump(-24 * hourMs);
    relay.onPost = () => undefined;
    const before = postsTo(bob).length;
    await world.pass(minuteMs + secondMs);
    expect(
      postsTo(bob)
        .slice(before)
        .map((one) => recordIn(one, bob).type),
    ).toEqual(['route']);
  });
});

describe('a question', () => {
  it('goes to the queue that was heard of last where its receiver has left the one that it was sent to', async () => {
    await bothRun();
    await attach(bob, 's-bob');
    const caller = sessionCaller('s-bob');
    const acknowledged = async () => {
      const { message_id } = await send();
      await world.pass(5 * secondMs);
      relay.onPost = ({ queue }) => (queue === alice.queue ? 'lost' : undefined);
      const [got] = ok(receive(bob, { project: 'shop' }, caller)).messages;
      ok(await acknowledge(bob, { messages: [got?.receipt as object], project: 'shop' }, caller));
      await world.pass(5 * secondMs);
      relay.onPost = () => undefined;
      return message_id;
    };
    const before = await acknowledged();
    await bob.stop();
    await leaveQueue(bob);
    bob.start();
    await world.pass(minuteMs);
    expect(relay.queues.has(bob.queue)).toBe(false);
    const after = await acknowledged();
    for (const id of [before, after]) expect(kindsOf(id)).not.toContain('ack acknowledged');
    await alice.stop();
    alice.start();
    await world.pass(3 * minuteMs);
    // It answers one question a minute.
    for (const id of [before, after]) expect(kindsOf(id)).toContain('ack acknowledged');
  });

  it('is answered when it comes again where the store failed at its answer', async () => {
    const { store } = bob;
    let failing = false;
    bob.store = {
      ...store,
      write: async (work) => {
        if (!failing) return store.write(work);
        failing = false;
        return store.write((tx) => {
          work(tx);
          throw unusable();
        });
      },
    } as Store;
    const porch = openGate(bob);
    const id = freshId();
    await porch.admit(message(bob, alice, {}, { id }));
    await bob.store.write((tx) =>
      tx.factsOut.remove(tx.factsOut.next(alice.key, alice.device, 64).map(({ seq }) => seq)),
    );
    const fields = { from_device: alice.device, ids: [id] };
    const query = forged(bob, alice.identity, { type: 'query', fields });
    failing = true;
    expect((await porch.admit(query)).verdicts).toEqual([{ defer_s: 30 }]);
    expect((await porch.admit(query)).verdicts).toEqual(['settle']);
    expect(toldBy(bob)).toMatchObject([{ wire_id: id, fact: 'stored' }]);
  });
});

describe('receipts', () => {
  it('follow their receiver to another queue', async () => {
    await bothRun();
    await attach(bob, 's-bob');
    const sent = await send();
    await world.pass(5 * secondMs);
    await alice.stop();
    await leaveQueue(alice);
    relay.queues.delete(alice.queue);
    const caller = sessionCaller('s-bob');
    const [got] = ok(receive(bob, { project: 'shop' }, caller)).messages;
    ok(await acknowledge(bob, { messages: [got?.receipt as object], project: 'shop' }, caller));
    const { message_id = '' } = got ?? {};
    const scope = { project: 'shop', recipient: 'bob', message_id };
    ok(await dispose(bob, { ...scope, value: 'accepted', idempotency_key: 'd1' }, caller));
    alice.start();
    await world.pass(40 * minuteMs);
    expect(kindsOf(sent.message_id)).toContain('disposition accepted');
    // From now on at once.
    ok(await dispose(bob, { ...scope, value: 'completed', idempotency_key: 'd2' }, caller));
    await world.pass(10 * secondMs);
    expect(kindsOf(sent.message_id)).toContain('disposition completed');
  });

  it('that nobody takes are kept for thirty days', async () => {
    bob.start();
    await world.pass(secondMs);
    const fact = (wire_id: string, ageMs: number) => ({
      peer_key: alice.key,
      device: alice.device,
      wire_id,
      fact: 'stored' as const,
      detail: 'unknown',
      at_ms: world.clock.nowMs() - ageMs,
    });
    await bob.store.write((tx) => {
      tx.factsOut.add(fact('00000000-0000-4000-8000-000000000001', 29 * 24 * hourMs));
      tx.factsOut.add(fact('00000000-0000-4000-8000-000000000002', 31 * 24 * hourMs));
    });
    await world.pass(2 * hourMs);
    expect(bob.rows('SELECT wire_id FROM receipt_out')).toEqual([
      { wire_id: '00000000-0000-4000-8000-000000000001' },
    ]);
  });
});

describe('a link that meets a store which cannot be used', () => {
  it('begins at its next round where the first write failed', async () => {
    const { store } = alice;
    let failing = true;
    alice.store = {
      ...store,
      write: (work) => (failing ? Promise.reject(unusable()) : store.write(work)),
    } as Store;
    alice.start();
    bob.start();
    await world.pass(secondMs);
    expect(relay.queues.has(alice.queue)).toBe(false);
    failing = false;
    await send();
    await world.pass(minuteMs);
    expect(relay.queues.has(alice.queue)).toBe(true);
    expect(inboxOf(bob)).toHaveLength(1);
  });

  it('uploads its card later where it could not be made at first', async () => {
    const { store } = alice;
    let writes = 0;
    let failing = false;
    alice.store = {
      ...store,
      // From the last write before the loops begin.
      write: async (work) => {
        const value = await store.write(work);
        writes += 1;
        failing ||= writes === 2;
        return value;
      },
      read: (work) => {
        if (failing) throw unusable();
        return store.read(work);
      },
    } as Store;
    alice.start();
    await world.pass(10 * secondMs);
    expect(writes).toBe(2);
    writes = 3;
    failing = false;
    await world.pass(5 * minuteMs);
    expect(relay.queues.get(alice.queue)?.card).toBeDefined();
  });
});

describe('[PEER-070] a relay that takes connections and never answers', () => {
  it('holds up nobody’s mail, receipts or routes but those for it, nor these where another relay of the peer takes them', async () => {
    const stalled = world.relay('https://stalled.example');
    const carol = await world.machine('carol');
    await world.befriend(alice, carol);
    const hear = (machine: Machine, peer: Machine, relays: readonly string[]) =>
      machine.store.write((tx) =>
        tx.devices.heard({
          peer_key: peer.key,
          device: peer.device,
          heard_ms: world.clock.nowMs(),
          route: { relays, suites: [1] },
        }),
      );
    await hear(alice, carol, [stalled.origin]);
    await hear(alice, bob, [stalled.origin, relay.origin]);
    const letGo: (() => void)[] = [];
    stalled.onPost = () => new Promise((resolve) => letGo.push(() => resolve(undefined)));
    for (const machine of [alice, bob]) machine.start();
    await world.pass(2 * secondMs);
    // Mail goes to both of the relays, and a receipt for Carol's is stuck.
    const porch = openGate(alice);
    await porch.admit(message(alice, carol), message(alice, bob));
    alice.wake.touch();
    ok(await post(alice, { peer: 'carol' }));
    const sent = await send();
    await alice.store.write((tx) =>
      putRoutes(tx, { random: alice.random, nowMs: world.clock.nowMs() }, [carol.key, bob.key]),
    );
    alice.wake.touch();
    await world.pass(2 * secondMs);
    expect(letGo.length).toBeGreaterThan(3);
    expect(inboxOf(bob)).toHaveLength(1);
    expect(kindsOf(sent.message_id)).toContain('stored unknown');
    const types = postsTo(bob).map((one) => recordIn(one, bob).type);
    expect(types).toEqual(expect.arrayContaining(['message', 'receipt', 'route']));
    // And again, while all of that is stuck still.
    await send({ payload: 'again' });
    await porch.admit(message(alice, bob));
    alice.wake.touch();
    const before = types.length;
    await world.pass(2 * secondMs);
    expect(
      postsTo(bob)
        .slice(before)
        .map((one) => recordIn(one, bob).type),
    ).toEqual(expect.arrayContaining(['message', 'receipt']));
    stalled.onPost = () => undefined;
    for (const go of letGo) go();
    await world.pass(secondMs);
  });
});

it('a repeated receipt says nothing of who was there when the message came', async () => {
  const porch = openGate(bob);
  const item = message(bob, alice, {}, { id: freshId() });
  await porch.admit(item);
  expect(toldBy(bob)).toMatchObject([{ fact: 'stored', detail: 'unknown' }]);
  // It went out, and was lost.
  await bob.store.write((tx) => tx.factsOut.drop({ peer_key: alice.key }));
  await attach(bob, 's1', { principal_id: 'bob' });
  await porch.admit(item);
  expect(toldBy(bob)).toMatchObject([{ fact: 'stored', detail: 'unknown' }]);
});
