// What an enemy may put into a queue: each item is refused at its step, counted there, kept nowhere and answered to nobody who is no
// peer; and the mail that comes after it flows.

import { describe, expect, it } from 'vitest';
import { type Signer, signerOf } from '../../src/crypto/ed25519.ts';
import { receive } from '../../src/mailbox/receive.ts';
import { bytesOfBase64url } from '../../src/protocol/base64url.ts';
import type { GateStep } from '../../src/protocol/gate.ts';
import { concat } from '../../src/protocol/wire/bytes.ts';
import { attach, difference, ok, post, sessionCaller } from '../contract/desk.ts';
import { byText } from './by-text.ts';
import { flipped, forged, freshId, message, stranger, strangersDevice } from './forge.ts';
import { type Machine, seedOf, World } from './machines.ts';
import type { ModelRelay } from './model-relay.ts';

interface Scene {
  world: World;
  relay: ModelRelay;
  alice: Machine;
  bob: Machine;
  carol: Machine;
}

async function scene(): Promise<Scene> {
  const world = new World();
  const relay = world.relay();
  const alice = await world.machine('alice');
  const bob = await world.machine('bob');
  const carol = await world.machine('carol');
  await world.befriend(alice, bob);
  await world.befriend(carol, bob);
  await attach(bob, 's-bob', { lease_ms: 300_000 });
  for (const machine of [alice, bob, carol]) machine.start();
  await world.pass(2_000);
  return { world, relay, alice, bob, carol };
}

/** The record of an item begun with these bytes at `at`, which its signature then covers or not. */
const put =
  (at: number, bytes: Iterable<number>) =>
  (record: Uint8Array): Uint8Array => {
    const copy = Uint8Array.from(record);
    copy.set([...bytes], at);
    return copy;
  };

const smallOrder = bytesOfBase64url(`AQ${'A'.repeat(41)}`) as Uint8Array;
/** y = 2^255 - 18, which is 1 written otherwise. */
const nonCanonical = Uint8Array.from([0xee, ...Array<number>(30).fill(0xff), 0x7f]);
const zeros = new Uint8Array(32);
const order = Uint8Array.from(
  Buffer.from('edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010', 'hex'),
);

/** S plus the order of the group: another signature that plain arithmetic takes for the same. */
function plusOrder(record: Uint8Array): Uint8Array {
  const copy = Uint8Array.from(record);
  let carry = 0;
  for (let at = 0; at < 32; at += 1) {
    const index = copy.length - 32 + at;
    const sum = (copy[index] as number) + (order[at] as number) + carry;
    copy[index] = sum & 0xff;
    carry = sum >> 8;
  }
  return copy;
}

const resigned =
  (by: Signer, from = false) =>
  (record: Uint8Array): Uint8Array => {
    const body = Uint8Array.from(record.subarray(0, -64));
    if (from) body.set(bytesOfBase64url(by.key) as Uint8Array, 13);
    return concat([body, by.sign(body)]);
  };

const hour = 3_600_000;
const lastTime = 2 ** 53 - 1;
type Make = (s: Scene) => Uint8Array;

/** @param told what the peer whose key it is is told; nobody else ever is */
const enemies: [string, GateStep, Make, string?][] = [
  ['nothing', 'item', () => new Uint8Array(0)],
  ['a text', 'item', () => Buffer.from('GET / HTTP/1.1')],
  [
    'an item cut short',
    'item',
    ({ bob, alice }) => message(bob, alice, {}, { item: (b) => b.subarray(0, -1) }),
  ],
  [
    'an item cut to its frame',
    'item',
    ({ bob, alice }) => message(bob, alice, {}, { item: (b) => b.subarray(0, 37) }),
  ],
  [
    'an item with a byte more',
    'item',
    ({ bob, alice }) => message(bob, alice, {}, { item: (b) => concat([b, zeros]) }),
  ],
  [
    'an item larger than any',
    'item',
    ({ bob, alice }) => message(bob, alice, {}, { item: (b) => concat([b, new Uint8Array(131_126)]) }),
  ],
  ['an unknown suite', 'item', ({ bob, alice }) => message(bob, alice, {}, { item: flipped(4, 8) })],
  ['an item with a bit changed', 'item', ({ bob, alice }) => message(bob, alice, {}, { item: flipped(-20) })],
  [
    'an encapsulated key of low order',
    'item',
    ({ bob, alice }) => message(bob, alice, {}, { item: put(5, zeros) }),
  ],
  ['an item of another queue', 'item', ({ bob, alice }) => message(bob, alice, {}, { queueId: bob.door })],
  ['an item of another machine', 'item', ({ carol, alice }) => message(carol, alice)],
  [
    'a record cut short',
    'item',
    ({ bob, alice }) => message(bob, alice, {}, { record: (b) => b.subarray(0, 150) }),
  ],
  ['another version', 'item', ({ bob, alice }) => message(bob, alice, {}, { body: flipped(9) })],
  ['an unknown type', 'item', ({ bob, alice }) => message(bob, alice, {}, { body: put(11, [9]) })],
  [
    'a listing',
    'item',
    ({ bob, alice }) => message(bob, alice, {}, { body: (b) => put(11, [8])(put(45, zeros)(b)) }),
  ],
  [
    'a time that no double counts',
    'item',
    ({ bob, alice }) => message(bob, alice, {}, { body: put(77, [0, 0x20]) }),
  ],
  [
    'a record with a bit changed',
    'signature',
    ({ bob, alice }) => message(bob, alice, {}, { record: flipped(130) }),
  ],
  [
    'a record that another signed',
    'signature',
    ({ bob, alice, carol }) => message(bob, alice, {}, { record: resigned(carol.identity) }),
  ],
  [
    'a record without its end',
    'signature',
    ({ bob, alice }) => message(bob, alice, {}, { record: (b) => b.subarray(0, -1) }),
  ],
  [
    'a key of small order',
    'signature',
    ({ bob, alice }) =>
      message(
        bob,
        alice,
        {},
        { record: (b) => put(b.length - 64, [...smallOrder, ...zeros])(put(13, smallOrder)(b)) },
      ),
  ],
  [
    'a key in another form',
    'signature',
    ({ bob, alice }) =>
      message(
        bob,
        alice,
        {},
        { record: (b) => put(b.length - 64, [...smallOrder, ...zeros])(put(13, nonCanonical)(b)) },
      ),
  ],
  [
    'a signature in another form',
    'signature',
    ({ bob, alice }) => message(bob, alice, {}, { record: plusOrder }),
  ],
  [
    'a signature that begins with a point of small order',
    'signature',
    ({ bob, alice }) => message(bob, alice, {}, { record: (b) => put(b.length - 64, smallOrder)(b) }),
  ],
  [
    'a record to another, sealed anew',
    'addressee',
    ({ bob, alice, carol }) => message(bob, alice, {}, { to: carol.key }),
  ],
  [
    'a card',
    'addressee',
    ({ bob, alice }) => message(bob, alice, {}, { body: (b) => put(11, [7])(put(45, zeros)(b)) }),
  ],
  ['a message of a stranger', 'authorised', ({ bob }) => message(bob, stranger)],
  [
    'a message that a stranger made his own',
    'authorised',
    ({ bob, alice }) => message(bob, alice, {}, { record: resigned(stranger, true) }),
  ],
  ['a stale message of a stranger', 'authorised', ({ bob }) => message(bob, stranger, {}, { timeMs: 1 })],
  ['a receipt of a stranger', 'authorised', ({ bob }) => receipt(bob, stranger, strangersDevice)],
  [
    'a stale message',
    'fresh',
    ({ bob, alice, world }) => message(bob, alice, {}, { timeMs: world.clock.nowMs() - 25 * hour }),
    'stale',
  ],
  [
    'a message of tomorrow',
    'fresh',
    ({ bob, alice, world }) => message(bob, alice, {}, { timeMs: world.clock.nowMs() + hour }),
    'stale',
  ],
  ['a stale receipt', 'fresh', ({ bob, alice }) => receipt(bob, alice.identity, alice.device, { timeMs: 1 })],
  ['a flag', 'fields', ({ bob, alice }) => message(bob, alice, {}, { body: flipped(12) }), 'reserved'],
  [
    'a body cut short',
    'fields',
    ({ bob, alice }) => message(bob, alice, {}, { body: (b) => b.subarray(0, -2) }),
    'malformed',
  ],
  [
    'bytes after the fields',
    'fields',
    ({ bob, alice }) => message(bob, alice, {}, { body: (b) => concat([b, zeros]) }),
    'malformed',
  ],
  [
    'a field that is unknown',
    'fields',
    ({ bob, alice }) =>
      message(
        bob,
        alice,
        {},
        { body: (b) => put(101, [0, (b[102] as number) + 1])(concat([b, Uint8Array.of(99, 0, 0, 0, 1, 1)])) },
      ),
    'unknown_field',
  ],
  [
    'no fields at all',
    'fields',
    ({ bob, alice }) => message(bob, alice, {}, { body: (b) => put(101, [0, 0])(b.subarray(0, 103)) }),
    'malformed',
  ],
  [
    'a target of no kind',
    'fields',
    ({ bob, alice }) =>
      message(
        bob,
        alice,
        {},
        { body: (b) => put(Buffer.from(b).indexOf(Buffer.from([3, 0, 0, 0, 1])) + 5, [7])(b) },
      ),
    'malformed',
  ],
  [
    'a content type of its own',
    'fields',
    ({ bob, alice }) => message(bob, alice, { content_type: 'text/html' }),
    'malformed',
  ],
  [
    'a privacy of its own',
    'fields',
    ({ bob, alice }) => message(bob, alice, { privacy: 'public' }),
    'malformed',
  ],
  ['a number as text', 'fields', ({ bob, alice }) => message(bob, alice, { payload: '7' }), 'malformed'],
  [
    'a number beyond doubles',
    'fields',
    ({ bob, alice }) => message(bob, alice, { content_type: 'application/json', payload: '1e999' }),
    'malformed',
  ],
  [
    'a nest without end',
    'fields',
    ({ bob, alice }) =>
      message(bob, alice, {
        content_type: 'application/json',
        payload: '['.repeat(9_000) + ']'.repeat(9_000),
      }),
    'malformed',
  ],
  [
    'a quiet message to a session',
    'fields',
    ({ bob, alice }) => message(bob, alice, { target_kind: 'session', quiet: true }),
    'malformed',
  ],
  [
    'a message to one session, meant for another',
    'fields',
    ({ bob, alice }) => message(bob, alice, { target_kind: 'session', intended_session: 's-bob' }),
    'malformed',
  ],
  [
    'a message that has expired',
    'fields',
    ({ bob, alice, world }) => message(bob, alice, { expires_at_ms: world.clock.nowMs() }),
    'expired',
  ],
  [
    'an expiry that no calendar has',
    'fields',
    ({ bob, alice }) => message(bob, alice, { expires_at_ms: lastTime }),
    'malformed',
  ],
  [
    'an expiry of year 10,000',
    'fields',
    ({ bob, alice }) => message(bob, alice, { expires_at_ms: 253_402_300_800_000 }),
    'malformed',
  ],
  [
    'a receipt of a time that no calendar has',
    'fields',
    ({ bob, alice }) => receipt(bob, alice.identity, alice.device, { at: lastTime }),
  ],
  [
    'a receipt for what was never sent',
    'receipt',
    ({ bob, alice }) => receipt(bob, alice.identity, alice.device),
  ],
];

function receipt(
  to: Machine,
  signer: Signer,
  device: string,
  { at = 1_000, of = freshId(), timeMs }: { at?: number; of?: string; timeMs?: number } = {},
): Uint8Array {
  const fact = { message_id: of, fact: { kind: 'ack', detail: 'ack' } as const, time_ms: at };
  return forged(
    to,
    signer,
    { type: 'receipt', fields: { from_device: device, facts: [fact] } },
    timeMs === undefined ? {} : { timeMs },
  );
}

const got = (bob: Machine) =>
  ok(receive(bob, { project: 'shop' }, sessionCaller('s-bob'))).messages.map(({ payload }) => payload);
const steps = (machine: Machine) =>
  machine.store.read((tx) => tx.gate.counts()).map(({ step, count }) => [step, count]);

/** What a machine keeps because of an item, beside counts, when peers were heard of, and what they are still to be told. */
const kept = (before: Record<string, number>, after: Record<string, number>) => {
  const { gate_refusal: _, receipt_out: __, ...others } = difference(before, after);
  return others;
};

describe('an enemy with the name of a queue puts in it', () => {
  it.each(enemies)('%s: refused at the step %s', async (_what, step, make, told) => {
    const s = await scene();
    const { world, relay, alice, bob } = s;
    const before = bob.counts();
    relay.inject(bob.queue, make(s));
    await world.pass(100);
    expect(steps(bob)).toEqual([[step, 1]]);
    expect(kept(before, bob.counts())).toEqual({});
    expect(relay.depth(bob.queue)).toBe(0);
    const facts = bob.rows('SELECT peer_key, device, fact, detail FROM receipt_out');
    expect(facts).toEqual(
      told === undefined
        ? []
        : [{ peer_key: alice.key, device: alice.device, fact: 'refused', detail: told }],
    );
    await world.pass(2_000);
    expect(relay.posts.map(({ queue }) => queue)).toEqual(told === undefined ? [] : [alice.queue]);
    ok(await post(alice, { peer: 'bob', payload: 'good' }));
    await world.pass(3_000);
    expect([got(bob), bob.rang.length, bob.logged]).toEqual([['good'], 1, []]);
    expect(steps(bob)).toEqual([[step, 1]]);
  });

  it('all of that at once, before and after a message: it comes, once', async () => {
    const s = await scene();
    const { world, relay, alice, bob } = s;
    const item = message(bob, alice, { payload: '"good"' });
    for (const [nth, [, , make]] of enemies.entries()) {
      relay.inject(bob.queue, make(s));
      if (nth % 9 === 0) relay.inject(bob.queue, item);
    }
    ok(await post(alice, { peer: 'bob', payload: 'better' }));
    await world.pass(10_000);
    expect([got(bob).toSorted(byText), relay.depth(bob.queue), bob.logged]).toEqual([
      ['better', 'good'],
      0,
      [],
    ]);
    const counts = new Map<string, number>();
    for (const [, step] of enemies) counts.set(step, (counts.get(step) ?? 0) + 1);
    counts.set('replay', Math.ceil(enemies.length / 9) - 1);
    expect(new Map(steps(bob) as [string, number][])).toEqual(counts);
  });
});

describe('an enemy who hears and repeats', () => {
  it('a message gets no second one, by neither queue; a receipt changes nothing', async () => {
    const s = await scene();
    const { world, relay, alice, bob } = s;
    ok(await post(alice, { peer: 'bob', payload: 'good' }));
    await world.pass(3_000);
    const posts = [...relay.posts];
    const before = [alice.counts(), bob.counts()];
    for (const { queue, body } of posts) for (let n = 0; n < 3; n += 1) relay.inject(queue, body);
    for (const { body } of posts) relay.inject(`${bob.key}.${bob.door}`, body);
    await world.pass(3_000);
    expect(got(bob)).toEqual(['good']);
    expect(kept(before[1] as never, bob.counts())).toEqual({});
    expect(kept(before[0] as never, alice.counts())).toEqual({});
    expect(steps(bob)).toEqual([
      ['item', 2],
      ['replay', 3],
    ]);
    // Of what is repeated, the first repetition is told by a receipt that itself is new.
    expect(steps(alice)).toEqual([['replay', 3]]);
  });

  it('a peer’s receipt for what went to another peer is dropped, fact by fact', async () => {
    const s = await scene();
    const { world, relay, alice, bob, carol } = s;
    // Bob never comes to tell that it is stored.
    await bob.stop();
    const sent = ok(await post(alice, { peer: 'bob' }));
    await world.pass(2_000);
    const wire = alice.store.read((tx) => tx.outbox.of(sent.message_id)?.wire_id) as string;
    await world.befriend(alice, carol);
    for (const at of [1_000, 2_000])
      relay.inject(alice.queue, receipt(alice, carol.identity, carol.device, { of: wire, at }));
    await world.pass(1_000);
    expect(steps(alice)).toEqual([['receipt', 2]]);
    expect(alice.rows("SELECT value FROM receipt WHERE receipt_kind <> 'relay_accept'")).toEqual([]);
    expect(alice.store.read((tx) => tx.outbox.of(sent.message_id)?.ended_at)).toBeNull();
    relay.inject(alice.queue, receipt(alice, bob.identity, bob.device, { of: wire }));
    await world.pass(1_000);
    expect(alice.rows("SELECT value FROM receipt WHERE receipt_kind <> 'relay_accept'")).toEqual([
      { value: 'acknowledged' },
    ]);
  });

  it('a key of a former peer is a stranger’s from the next message on', async () => {
    const s = await scene();
    const { world, relay, alice, bob, carol } = s;
    bob.peers = bob.peers.filter(({ key }) => key !== carol.key);
    relay.inject(bob.queue, message(bob, carol));
    relay.inject(bob.queue, message(bob, signerOf(seedOf(200))));
    relay.inject(bob.queue, message(bob, alice, { payload: '"good"' }));
    await world.pass(2_000);
    expect([got(bob), steps(bob)]).toEqual([['good'], [['authorised', 2]]]);
    expect(relay.posts.map(({ queue }) => queue)).toEqual([alice.queue]);
  });
});
