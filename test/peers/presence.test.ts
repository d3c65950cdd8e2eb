// Who is where on the machines of a peer, and which of them a message goes to.

import { beforeEach, describe, expect, it } from 'vitest';
import { signRecord } from '../../src/crypto/record.ts';
import { openCard, sealCard } from '../../src/crypto/sealed-card.ts';
import { receive } from '../../src/mailbox/receive.ts';
import { takePresence } from '../../src/peers/card.ts';
import { chooseDevice, type KnownDevice } from '../../src/peers/choose-device.ts';
import { deviceSeen } from '../../src/peers/device-state.ts';
import { discoverPeer, type PeerDiscovery } from '../../src/peers/discover.ts';
import type { DeviceRow } from '../../src/ports/peers.ts';
import type { Relay, Signer } from '../../src/ports/relay.ts';
import type { CardSession } from '../../src/protocol/wire/record.ts';
import { disconnect } from '../../src/sessions/disconnect.ts';
import { attach, ok, post, refused, sessionCaller } from '../contract/desk.ts';
import { cli, type Machine, openPair, type World } from './machines.ts';
import type { ModelRelay } from './model-relay.ts';

const secondMs = 1_000;
const hourMs = 3_600_000;

let world: World;
let relay: ModelRelay;
let alice: Machine;
let bob: Machine;

beforeEach(async () => {
  ({ world, relay, alice, bob } = await openPair());
  for (const machine of [alice, bob])
    machine.link = {
      relays: [relay.origin],
      client: async (origin: string, signer: Signer): Promise<Relay> =>
        (world.relays.find((one) => one.origin === origin) as ModelRelay).client(signer),
    };
});

const row = (over: Partial<DeviceRow>): DeviceRow => ({
  peer_key: 'k',
  device: 'd'.repeat(32),
  relays: [],
  suites: [1],
  heard_ms: 0,
  looked_ms: null,
  age_ms: null,
  gone: false,
  card_ms: null,
  sessions: [],
  ...over,
});

const card = (session_id: string, over: Partial<CardSession> = {}): CardSession => ({
  session_id,
  principal: 'bob',
  project: 'shop',
  host_kind: 'claude',
  directory: 'shop',
  git: '',
  work_summary: '',
  bell: 'listener',
  generation: 1,
  ...over,
});

const look = async (over: Record<string, unknown> = {}): Promise<PeerDiscovery> =>
  ok(await discoverPeer(alice, { peer: 'bob', project: 'shop', ...over }));

const inboxOf = (machine: Machine, session: string) =>
  ok(receive(machine, { project: 'shop' }, sessionCaller(session))).messages;

describe('the state of a device', () => {
  it('[PEER-049] is live below 90 s, away through 3 days, gone beyond, and gone where it unregistered', async () => {
    const nowMs = 10 * 24 * hourMs;
    const at = (age_ms: number) => deviceSeen(row({ looked_ms: nowMs, age_ms }), nowMs).state;
    expect([0, 89_999, 90_000, 86_399_999, 86_400_000, 259_200_000, 259_200_001].map(at)).toEqual([
      'live',
      'live',
      'away',
      'away',
      'away',
      'away',
      'gone',
    ]);
    expect(deviceSeen(row({ looked_ms: nowMs, age_ms: 5, gone: true }), nowMs).state).toBe('gone');
    bob.start();
    await world.pass(2 * secondMs);
    // What is said of a long silence is another word from the day on.
    await bob.stop();
    const queue = relay.queues.get(bob.queue);
    if (queue === undefined) throw new Error('it registered');
    queue.gone = false;
    for (const [age, note] of [
      [86_399_999, false],
      [86_400_000, true],
    ] as const) {
      queue.drainedMs = world.clock.nowMs() - age;
      await alice.store.write((tx) => tx.devices.forget(bob.key));
      await alice.store.write((tx) =>
        tx.devices.heard({ peer_key: bob.key, device: bob.device, heard_ms: 0 }),
      );
      const [device] = (await look()).devices;
      expect([device?.state, 'note' in (device ?? {})]).toEqual(['away', note]);
    }
  });

  it('[PEER-050] is kept by draining: without its router it is away 90 s later', async () => {
    bob.start();
    await attach(bob, 's1');
    await world.pass(6 * secondMs);
    for (let minute = 0; minute < 10; minute += 1) {
      await world.pass(60 * secondMs);
      expect(world.clock.nowMs() - (relay.queues.get(bob.queue)?.drainedMs ?? 0)).toBeLessThanOrEqual(
        30 * secondMs,
      );
    }
    expect((await look()).devices[0]?.state).toBe('live');
    // Killed: it says nothing any more.
    const drainedMs = relay.queues.get(bob.queue)?.drainedMs ?? 0;
    relay.breakDown();
    await world.pass(89_999 - (world.clock.nowMs() - drainedMs));
    relay.down = undefined;
    const queue = relay.queues.get(bob.queue);
    await bob.stop();
    if (queue !== undefined) Object.assign(queue, { drainedMs: world.clock.nowMs() - 90_000, gone: false });
    expect((await look()).devices[0]?.state).toBe('away');
  });

  it('[PEER-053] is gone at once after a clean close, and stays so; mail that comes meanwhile arrives later', async () => {
    alice.start();
    bob.start();
    const session = await attach(bob, 's1');
    await world.pass(6 * secondMs);
    expect((await look()).devices[0]).toMatchObject({
      state: 'live',
      sessions: [{ session_id: 's1', state: 'live' }],
    });
    await disconnect(bob.board, session.connection_id, 'adapter_disconnect');
    bob.wake.touch();
    await world.pass(6 * secondMs);
    expect((await look()).devices[0]).toMatchObject({ state: 'live', sessions: [] });
    await bob.stop();
    expect((await look()).devices[0]?.state).toBe('gone');
    ok(await post(alice, { peer: 'bob' }));
    await world.pass(10 * 60 * secondMs);
    expect(relay.queues.get(bob.queue)).toMatchObject({ gone: true });
    expect((await look()).devices[0]?.state).toBe('gone');
    bob.start();
    await world.pass(5 * secondMs);
    expect((await look()).devices[0]?.state).toBe('live');
    expect(bob.rang).toHaveLength(1);
  });
});

describe('the card', () => {
  it('[PEER-051] shows peers the sessions, and the relay nothing of them', async () => {
    bob.start();
    await attach(bob, 'session-one', { principal_id: 'reviewer', work_summary: 'parsing dates' });
    bob.wake.touch();
    await world.pass(12 * secondMs);
    expect((await look()).devices[0]?.sessions).toEqual([
      {
        ...card('session-one', { principal: 'reviewer', directory: '', work_summary: 'parsing dates' }),
        state: 'live',
      },
    ]);
    const held = Buffer.from(relay.queues.get(bob.queue)?.card ?? new Uint8Array()).toString('latin1');
    expect(held.length).toBeGreaterThan(500);
    for (const text of ['session-one', 'reviewer', 'shop', 'parsing', bob.key])
      expect(held).not.toContain(text);
    const stranger = await world.machine('mallory');
    expect(openOf(stranger)).toBe('unopenable');
    expect(openOf(alice)).toBeInstanceOf(Uint8Array);
  });

  const heldBy = (): Uint8Array => relay.queues.get(bob.queue)?.card ?? new Uint8Array();

  const openOf = (machine: Machine) =>
    openCard({
      card: heldBy(),
      seed: machine.identity.seed,
      owner: bob.key,
      deviceId: bob.device,
    });

  it('[PEER-102] has a new key with each upload, and leaves a removed peer out at once', async () => {
    bob.start();
    await world.pass(6 * secondMs);
    const first = relay.queues.get(bob.queue)?.card as Uint8Array;
    expect(openOf(alice)).toBeInstanceOf(Uint8Array);
    bob.peers = [];
    bob.wake.touch();
    await world.pass(6 * secondMs);
    expect(openOf(alice)).toBe('unopenable');
    bob.peers.push({ name: 'alice', key: alice.key, receipts: true });
    bob.wake.touch();
    await world.pass(6 * secondMs);
    expect(openOf(alice)).toBeInstanceOf(Uint8Array);
    expect(Buffer.compare(first.subarray(-64), heldBy().subarray(-64))).not.toBe(0);
  });

  it('[PEER-101] has room for 256; of 257 peers the newest contacts come first, and one sees the device alone', async () => {
    const keys = await Promise.all(
      Array.from(
        { length: 256 },
        async (_, nth) =>
          (await import('../../src/crypto/ed25519.ts')).signerOf(Buffer.alloc(32, `peer ${nth}`)).key,
      ),
    );
    for (const [nth, key] of keys.entries()) bob.peers.push({ name: `p${nth}`, key, receipts: true });
    // Alice was heard of: she comes before all that never were.
    bob.start();
    await world.pass(8 * secondMs);
    expect(openOf(alice)).toBeInstanceOf(Uint8Array);
    expect(relay.queues.get(bob.queue)?.card?.length).toBeLessThanOrEqual(65_536);
    await bob.store.write((tx) => tx.devices.forget(alice.key));
    for (const key of keys)
      await bob.store.write((tx) =>
        tx.devices.heard({ peer_key: key, device: 'e'.repeat(32), heard_ms: world.clock.nowMs() }),
      );
    await attach(bob, 's1');
    bob.wake.touch();
    await world.pass(8 * secondMs);
    expect(openOf(alice)).toBe('unopenable');
    const [device] = (await look()).devices;
    expect(device).toMatchObject({ state: 'live', sessions: [] });
  }, 30_000);

  it('[PEER-052] is signed anew on change and every 12 hours; an old one, or one older than the last, is left alone', async () => {
    bob.start();
    await world.pass(6 * secondMs);
    const signedAt = (): number => {
      const record = openOf(alice) as Uint8Array;
      return Number(Buffer.from(record).readBigUInt64BE(77));
    };
    const first = signedAt();
    await world.pass(11 * hourMs);
    expect(signedAt()).toBe(first);
    await world.pass(hourMs + 120 * secondMs);
    expect(signedAt() - first).toBeGreaterThanOrEqual(12 * hourMs);
    await bob.stop();
    const cardAt = (time_ms: number, session: string): Uint8Array => {
      const record = signRecord(
        {
          type: 'card',
          from: bob.key,
          to: undefined,
          time_ms,
          id: '00000000-0000-0000-0000-000000000001',
          fields: { sessions: [card(session)] },
        },
        bob.identity,
      );
      const random = (count: number) => bob.random.bytes(count);
      return sealCard({
        owner: bob.key,
        deviceId: bob.device,
        record,
        recipients: [alice.key],
        random,
      }) as Uint8Array;
    };
    const nowMs = world.clock.nowMs();
    const seen = async (held: Uint8Array): Promise<string[]> => {
      const of = { peer_key: bob.key, device: bob.device };
      await alice.store.write((tx) =>
        takePresence(tx, of, alice.identity, { age_ms: 0, gone: false, card: held }, nowMs),
      );
      return alice.store.read(
        (tx) => tx.devices.get(bob.key, bob.device)?.sessions.map(({ session_id }) => session_id) ?? [],
      );
    };
    expect(await seen(cardAt(nowMs - 259_200_001, 'old'))).toEqual([]);
    expect(await seen(cardAt(nowMs - 1_000, 'newer'))).toEqual(['newer']);
    expect(await seen(cardAt(nowMs - 1_001, 'older'))).toEqual(['newer']);
    expect(await seen(cardAt(nowMs, 'newest'))).toEqual(['newest']);
  }, 30_000);
});

describe('discovery of a peer', () => {
  it('[PEER-054] names relays that fail; where all do it is an error, never an empty list', async () => {
    const other = world.relay('http://other.test');
    alice.link = { ...(alice.link as NonNullable<typeof alice.link>), relays: [relay.origin, other.origin] };
    bob.start();
    await attach(bob, 's1');
    await world.pass(6 * secondMs);
    other.down = other.fail(503, 'store_unavailable');
    const one = await look();
    expect(one.devices).toMatchObject([
      { device: bob.device, state: 'live', age_ms: expect.any(Number), sessions: [{ session_id: 's1' }] },
    ]);
    expect(one.failed_relays).toEqual([{ relay: other.origin, why: expect.stringContaining(other.origin) }]);
    relay.breakDown();
    await expect(look()).rejects.toMatchObject({
      code: 'connection_closed',
      message: expect.stringContaining(relay.origin),
    });
  });

  it('shows an empty list only where no machine is known', async () => {
    await alice.store.write((tx) => tx.devices.forget(bob.key));
    expect((await look()).devices).toEqual([]);
  });
});

describe('the device that a message goes to', () => {
  const nowMs = 10 * 24 * hourMs;
  const known = (name: string, over: Partial<DeviceRow>): KnownDevice => {
    const one = row({ device: name, ...over });
    return { row: one, ...deviceSeen(one, nowMs) };
  };
  const wanted = { project: 'shop', recipient: 'bob', target_kind: 'principal' } as const;
  const live = { looked_ms: nowMs, age_ms: 0 };
  const away = { looked_ms: nowMs, age_ms: 3_600_000 };

  it('[PEER-055] is the one that lists it, else the last heard of, else the only live or away one; several are told apart by the caller', () => {
    const listing = { sessions: [card('s1')] };
    const choose = (...devices: KnownDevice[]) => chooseDevice(devices, wanted);
    expect(choose()).toBe('none');
    expect(choose(known('a', live), known('b', { ...live, ...listing }))).toEqual({ device: 'b' });
    expect(choose(known('a', { ...live, heard_ms: nowMs - 1 }), known('b', { ...away, ...listing }))).toEqual(
      { device: 'b' },
    );
    expect(choose(known('a', { ...away, ...listing }), known('b', { ...live, ...listing }))).toEqual({
      device: 'b',
    });
    expect(
      choose(known('a', { ...away, heard_ms: nowMs - 10 }), known('b', { ...live, heard_ms: nowMs - 20 })),
    ).toEqual({ device: 'a' });
    expect(choose(known('a', { ...live }), known('b', { ...away }))).toEqual({ device: 'a' });
    expect(choose(known('a', { ...away }))).toEqual({ device: 'a' });
    const several = choose(known('a', { ...live, ...listing }), known('b', { ...live, ...listing }));
    expect(several).toMatchObject({ several: [{ row: { device: 'a' } }, { row: { device: 'b' } }] });
  });

  it('[PEER-055] is asked of the caller where several list it, and waits for where none is known', async () => {
    for (const device of ['a'.repeat(32), 'b'.repeat(32)])
      await alice.store.write((tx) => {
        const of = { peer_key: bob.key, device };
        tx.devices.heard({ ...of, heard_ms: world.clock.nowMs() });
        tx.devices.looked({ ...of, looked_ms: world.clock.nowMs(), age_ms: 0, gone: false });
        tx.devices.card({ ...of, card_ms: 1, sessions: [card(`s-${device[0]}`)] });
      });
    const refusal = refused(await post(alice, { peer: 'bob' }));
    expect(refusal).toMatchObject({ code: 'ambiguous_peer', message: expect.stringContaining('"s-a"') });
    const exact = ok(await post(alice, { peer: 'bob', target_kind: 'session', recipient: 's-b' }));
    expect(alice.store.read((tx) => tx.outbox.of(exact.message_id)?.device)).toBe('b'.repeat(32));
    await alice.store.write((tx) => tx.devices.forget(bob.key));
    const waiting = ok(await post(alice, { peer: 'bob' }));
    expect(waiting).toMatchObject({ delivery_state: 'pending', recipient_presence: 'unknown' });
    alice.start();
    bob.start();
    await world.pass(60 * secondMs);
    expect(alice.store.read((tx) => tx.outbox.of(waiting.message_id))).toMatchObject({
      device: null,
      ended_at: null,
    });
    // Whatever record of it comes says where it is.
    ok(await post(bob, { peer: 'alice' }));
    await world.pass(5 * secondMs);
    expect(alice.store.read((tx) => tx.outbox.of(waiting.message_id))?.ended_at).not.toBeNull();
  });

  it('[PEER-057] keeps its mail where the session that is meant is away; the answer names one that is live', async () => {
    await alice.store.write((tx) => {
      const of = { peer_key: bob.key, device: bob.device };
      tx.devices.looked({ ...of, looked_ms: world.clock.nowMs(), age_ms: 0, gone: false });
      tx.devices.card({ ...of, card_ms: 1, sessions: [card('s2')] });
    });
    const sent = ok(await post(alice, { peer: 'bob', target_kind: 'session', recipient: 's1' }));
    expect(sent).toMatchObject({
      recipient_presence: 'gone',
      live_alternative: { session_id: 's2', principal: 'bob' },
    });
    alice.start();
    bob.start();
    await world.pass(5 * secondMs);
    expect(inboxOf(bob, 's2')).toEqual([]);
    expect(inboxOf(bob, 's1')).toMatchObject([{ message_id: expect.any(String) }]);
  });

  it('[PEER-058] is another one than the sender for `self`', async () => {
    await attach(alice, 's1');
    const caller = sessionCaller('s1');
    const own = { peer: 'self', target_kind: 'session', recipient: 's1' };
    expect(refused(await post(alice, own, caller)).code).toBe('invalid_request');
    const laptop = await world.machine('laptop', { seed: 1 });
    expect(laptop.key).toBe(alice.key);
    await alice.store.write((tx) =>
      tx.devices.heard({ peer_key: alice.key, device: laptop.device, heard_ms: world.clock.nowMs() }),
    );
    alice.start();
    laptop.start();
    await world.pass(2 * secondMs);
    const sent = ok(await post(alice, { peer: 'self', recipient: 'anna' }));
    await world.pass(5 * secondMs);
    const [got] = ok(receive(laptop, { project: 'shop', recipient: 'anna' }, cli)).messages;
    expect(got).toMatchObject({ origin: { peer: 'self' } });
    expect(alice.store.read((tx) => tx.outbox.of(sent.message_id))?.ended_at).not.toBeNull();
  });
});

describe('what is said of a recipient at a peer', () => {
  it.each([
    ['live', { looked: 0, sessions: [card('s1')] }],
    ['deaf', { looked: 0, sessions: [card('s1', { bell: 'none' })] }],
    ['away', { looked: hourMs, sessions: [card('s1')] }],
    ['gone', { looked: 0, gone: true, sessions: [card('s1')] }],
    ['unknown', { looked: 0, sessions: [] }],
  ] as const)('is %s as its card and its age say', async (state, { looked, sessions, ...more }) => {
    await alice.store.write((tx) => {
      const of = { peer_key: bob.key, device: bob.device };
      tx.devices.forget(bob.key);
      tx.devices.heard({ ...of, heard_ms: 0 });
      tx.devices.looked({ ...of, looked_ms: world.clock.nowMs(), age_ms: looked, gone: 'gone' in more });
      tx.devices.card({ ...of, card_ms: 1, sessions });
    });
    await world.pass(10 * secondMs);
    const sent = ok(await post(alice, { peer: 'bob' }));
    expect(sent).toMatchObject({ recipient_presence: state, presence_age_ms: looked + 10 * secondMs });
    expect(alice.rows('SELECT * FROM presence')).toEqual([]);
  });
});
