// Two strangers come to trust each other over a relay, through the whole gate, and whatever was lost on the way is repaired by asking
// again.

import { describe, expect, it } from 'vitest';
import { signRecord } from '../../src/crypto/record.ts';
import { sealItem } from '../../src/crypto/sealed-item.ts';
import { receive } from '../../src/mailbox/receive.ts';
import { accept } from '../../src/peers/pairing/accept.ts';
import { ask } from '../../src/peers/pairing/ask.ts';
import type { PairingGround } from '../../src/peers/pairing/ground.ts';
import { reject } from '../../src/peers/pairing/reject.ts';
import { requests } from '../../src/peers/pairing/requests.ts';
import type { Refusal } from '../../src/protocol/errors.ts';
import { renderPairingNotice } from '../../src/protocol/pairing-notice.ts';
import { attach, ok, post, refused, sessionCaller } from '../contract/desk.ts';
import { type Machine, World } from './machines.ts';

/** What the verbs of pairing need on a machine that is reached there. */
const groundOf = (machine: Machine, origin: string): PairingGround => ({
  ...machine,
  name: undefined,
  relays: [origin],
  policyFile: {
    add: async ({ name, key }) => {
      const peer = { name, key, receipts: true };
      machine.peers.push(peer);
      return peer;
    },
    remove: async () => undefined as unknown as Refusal,
  },
  endOutbox: () => {},
});

async function strangers() {
  const world = new World();
  const relay = world.relay('https://relay.example');
  const alice = await world.machine('alice');
  const bob = await world.machine('bob');
  alice.start();
  bob.start();
  await world.pass(1_000);
  const ground = (machine: Machine): PairingGround => groundOf(machine, relay.origin);
  const address = (of: Machine) => `postbell:${of.key}.${of.door}@${relay.origin}`;
  const asks = async () => ok(await ask(ground(alice), { target: address(bob), name: 'bob' }));
  const pending = async (of: Machine) => ok(await requests(ground(of), { byOperator: false })).requests;
  const names = (of: Machine) => of.peers.map(({ name }) => name);
  return { world, relay, alice, bob, ground, asks, pending, names };
}

describe('pairing over a relay', () => {
  it('ends with two peers that write to each other, and nothing is left on the relay', async () => {
    const { world, relay, alice, bob, ground, asks, pending, names } = await strangers();
    await asks();
    await world.pass(3_000);
    expect([names(alice), names(bob), relay.depth()]).toEqual([[], [], 0]);
    expect(await pending(bob)).toMatchObject([{ key: alice.key }]);
    ok(await accept(ground(bob), { key: alice.key, name: 'alice' }));
    await world.pass(3_000);
    expect([names(alice), names(bob), relay.depth()]).toEqual([['bob'], ['alice'], 0]);
    await attach(bob, 's-bob');
    ok(await post(alice, { peer: 'bob' }));
    await world.pass(3_000);
    expect(ok(receive(bob, { project: 'shop' }, sessionCaller('s-bob'))).messages).toMatchObject([
      { sender: 'alice', payload: 'hello bob' },
    ]);
  });

  it('[PEER-025] is repaired by asking again, however often the confirmation is lost; no policy changes and nobody is rung', async () => {
    const { world, relay, alice, bob, ground, asks, pending, names } = await strangers();
    await asks();
    await world.pass(3_000);
    relay.onPost = ({ queue }) => (queue === alice.queue ? 'lost' : undefined);
    ok(await accept(ground(bob), { key: alice.key, name: 'alice' }));
    for (let again = 0; again < 3; again += 1) {
      await world.pass(3_000);
      expect(names(alice)).toEqual([]);
      await asks();
    }
    await world.pass(3_000);
    const rung = bob.counts().pairing_notice;
    relay.onPost = () => undefined;
    await asks();
    await world.pass(3_000);
    expect([names(alice), names(bob), await pending(bob)]).toEqual([['bob'], ['alice'], []]);
    expect([rung, bob.counts().pairing_notice]).toEqual([0, 0]);
    // Two that were added by hand on both sides know each other's route after one asked.
    const carol = await world.machine('carol');
    carol.peers.push({ name: 'bob', key: bob.key, receipts: true });
    bob.peers.push({ name: 'carol', key: carol.key, receipts: true });
    carol.start();
    ok(await ask(ground(carol), { target: `postbell:${bob.key}.${bob.door}@${relay.origin}` }));
    await world.pass(3_000);
    const routes = (at: Machine, of: Machine) => at.store.read((tx) => tx.devices.of(of.key));
    expect(routes(carol, bob)).toMatchObject([{ device: bob.device, relays: [relay.origin] }]);
    expect(routes(bob, carol)).toMatchObject([{ device: carol.device, relays: [relay.origin] }]);
    expect(bob.counts().pairing_notice).toBe(0);
  });

  it('of two machines of one account needs nobody’s consent: each learns where the other is, and mail to self goes there', async () => {
    const world = new World();
    const relay = world.relay('https://relay.example');
    const laptop = await world.machine('laptop', { seed: 7 });
    const desk = await world.machine('desk', { seed: 7 });
    laptop.start();
    desk.start();
    await world.pass(1_000);
    expect(laptop.key).toBe(desk.key);
    const address = ({ key, door }: Machine) => `postbell:${key}.${door}@${relay.origin}`;
    const asking = groundOf(laptop, relay.origin);
    for (const [target, name] of [
      [address(laptop), undefined],
      [address(desk), 'desk'],
    ] as const)
      expect(refused(await ask(asking, { target, ...(name && { name }) })).code).toBe('invalid_request');
    expect(ok(await ask(asking, { target: address(desk) }))).toMatchObject({ name: 'self', known: true });
    await world.pass(5_000);
    const own = (machine: Machine) =>
      machine.store.read((tx) => tx.devices.of(machine.key)).map(({ device }) => device);
    expect([own(laptop), own(desk)]).toEqual([[desk.device], [laptop.device]]);
    for (const { rows } of [laptop, desk])
      for (const table of ['pair_request', 'pair_asked', 'control_job', 'pairing_notice'])
        expect(rows(`SELECT * FROM ${table}`)).toEqual([]);
    await attach(desk, 's-desk');
    ok(await post(laptop, { peer: 'self', recipient: 's-desk', target_kind: 'session' }));
    await world.pass(5_000);
    expect(ok(receive(desk, { project: 'shop' }, sessionCaller('s-desk'))).messages).toHaveLength(1);
  });

  it('takes place though each was off for longer than a relay keeps a record, by the next request alone', async () => {
    const { world, alice, bob, ground, asks, pending, names } = await strangers();
    // As machines that sleep.
    const days = async (count: number): Promise<void> => {
      for (let day = 0; day < count; day += 1) {
        world.clock.jump(86_400_000);
        await world.pass(90_000);
      }
    };
    await bob.stop();
    await asks();
    await world.pass(3_000);
    await days(2);
    bob.start();
    await days(1);
    expect(await pending(bob)).toMatchObject([{ key: alice.key }]);
    await alice.stop();
    ok(await accept(ground(bob), { key: alice.key, name: 'alice' }));
    await days(2);
    expect([names(alice), names(bob)]).toEqual([[], ['alice']]);
    alice.start();
    await days(1);
    expect([names(alice), names(bob)]).toEqual([['bob'], ['alice']]);
    // Answered, it is asked no more.
    expect(alice.rows('SELECT * FROM control_job')).toEqual([]);
  });

  it('is over on both sides where both asked and one of them is a peer of the other already', async () => {
    const { world, relay, alice, bob, ground, asks, names } = await strangers();
    bob.peers.push({ name: 'alice', key: alice.key, receipts: true });
    // Bob's request is at Alice before she asks herself, and nobody there has looked at it.
    ok(await ask(ground(bob), { target: `postbell:${alice.key}.${alice.door}@${relay.origin}` }));
    await world.pass(3_000);
    await asks();
    await world.pass(3_000);
    expect([names(alice), names(bob)]).toEqual([['bob'], ['alice']]);
    for (const machine of [alice, bob])
      expect(machine.counts()).toMatchObject({ pair_asked: 0, pair_request: 0, control_job: 0 });
  });

  it('may be asked for again after it was dropped; the same signed record once more changes nothing', async () => {
    const { world, relay, alice, bob, ground, asks, pending } = await strangers();
    await asks();
    await world.pass(3_000);
    ok(await reject(ground(bob), alice.key));
    const door = `${bob.key}.${bob.door}`;
    const [first] = relay.posts.filter(({ queue }) => queue === door);
    relay.inject(door, first?.body as Uint8Array);
    await world.pass(3_000);
    expect(await pending(bob)).toEqual([]);
    await asks();
    await world.pass(3_000);
    expect(await pending(bob)).toMatchObject([{ key: alice.key }]);
  });

  it('[PEER-031] of a stranger brings a request and nothing else of him: the rest leaves no trace but the counter', async () => {
    const { world, relay, alice, bob, asks, pending } = await strangers();
    alice.peers.push({ name: 'bob', key: bob.key, receipts: true });
    await alice.store.write((tx) =>
      tx.devices.heard({
        peer_key: bob.key,
        device: bob.device,
        heard_ms: world.clock.nowMs(),
        route: { relays: [relay.origin], suites: [1] },
      }),
    );
    const before = bob.counts();
    ok(await post(alice, { peer: 'bob' }));
    await world.pass(3_000);
    expect(relay.posts.some(({ queue }) => queue === bob.queue)).toBe(true);
    const { gate_refusal, ...after } = bob.counts();
    const { gate_refusal: _, ...first } = before;
    expect([after, gate_refusal, relay.depth(bob.queue)]).toEqual([first, 1, 0]);
    expect(bob.store.read((tx) => tx.gate.counts())).toMatchObject([{ step: 'authorised', count: 1 }]);
    // The request holds key, route and claimed name.
    await asks();
    await world.pass(3_000);
    expect(await pending(bob)).toMatchObject([{ key: alice.key, claimed_name: alice.key.slice(0, 8) }]);
    expect(bob.rows('SELECT * FROM pair_request')).toMatchObject([
      {
        peer_key: alice.key,
        device: alice.device,
        relays: JSON.stringify([relay.origin]),
        name: alice.key.slice(0, 8),
      },
    ]);
  });

  it('[PEER-042] whose name was taken meanwhile overwrites nothing: a notice, the request is over, and what follows flows', async () => {
    const { world, relay, alice, bob, ground, asks, names } = await strangers();
    const carol = await world.machine('carol');
    await asks();
    await world.pass(3_000);
    await alice.stop();
    ok(await accept(ground(bob), { key: alice.key, name: 'alice' }));
    await world.befriend(alice, carol);
    (alice.peers[0] as { name: string }).name = 'bob';
    carol.start();
    ok(await post(carol, { peer: 'alice' }));
    await world.pass(3_000);
    // Both wait for her, the acceptance before the message.
    expect(relay.depth(alice.queue)).toBe(2);
    alice.start();
    await world.pass(3_000);
    expect(alice.peers).toMatchObject([{ name: 'bob', key: carol.key }]);
    expect(alice.store.read((tx) => tx.pairing.asked.all())).toEqual([]);
    const [notice] = alice.store.read((tx) => tx.pairing.notices.waiting('s-alice'));
    expect(notice).toMatchObject({ kind: 'conflict', peer_key: bob.key, name: 'bob' });
    expect(renderPairingNotice({ requests: 0, conflicts: [{ name: 'bob', key: bob.key }] })).toContain(
      `postbell peer add NAME ${bob.key}`,
    );
    await attach(alice, 's-alice');
    const waiting = () =>
      ok(receive(alice, { project: 'shop', recipient: 'bob' }, sessionCaller('s-alice'))).messages;
    expect(waiting()).toMatchObject([{ origin: { peer: 'bob', sender_key: carol.key } }]);
    // With what the notice says, the other side's messages come in, too.
    alice.peers.push({ name: 'bob2', key: bob.key, receipts: true });
    ok(await post(bob, { peer: 'alice' }));
    await world.pass(3_000);
    expect(waiting()).toMatchObject([{}, { origin: { peer: 'bob2', sender_key: bob.key } }]);
    expect(names(alice)).toEqual(['bob', 'bob2']);
  });

  it('[PEER-048] goes through the door, which takes nothing else: a message there is dropped, even of a peer', async () => {
    const { world, relay, alice, bob, ground, asks } = await strangers();
    await asks();
    await world.pass(3_000);
    ok(await accept(ground(bob), { key: alice.key, name: 'alice' }));
    await world.pass(3_000);
    const identity = alice.identity;
    const record = {
      type: 'message' as const,
      from: alice.key,
      to: bob.key,
      time_ms: world.clock.nowMs(),
      id: '20212223-2425-2627-2829-2a2b2c2d2e2f',
      fields: {
        project: 'shop',
        recipient: 'bob',
        target_kind: 'principal' as const,
        content_type: 'text/plain',
        payload: '"hello"',
        sender: 'alice',
        privacy: 'private',
        expires_at_ms: world.clock.nowMs() + 60_000,
        hops: 0,
        root_id: '20212223-2425-2627-2829-2a2b2c2d2e2f',
        from_device: alice.device,
      },
    };
    const post = async (queueId: string): Promise<void> => {
      const sealed = { to: bob.key, queueId, ephemeral: alice.random.bytes(32) };
      relay.inject(`${bob.key}.${queueId}`, sealItem({ ...sealed, record: signRecord(record, identity) }));
      await world.pass(3_000);
    };
    await post(bob.door);
    expect(bob.store.read((tx) => tx.gate.counts())).toMatchObject([{ step: 'authorised', count: 1 }]);
    expect([bob.counts().message, relay.depth()]).toEqual([0, 0]);
    // In its own queue the very same is taken.
    await post(bob.device);
    expect([bob.counts().message, relay.depth()]).toEqual([1, 0]);
  });
});
