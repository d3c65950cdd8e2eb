// Whom an account trusts, added and removed by hand; what is told of it, and what becomes of what was on its way.

import { beforeEach, describe, expect, it } from 'vitest';
import { signRecord } from '../../src/crypto/record.ts';
import { sealItem } from '../../src/crypto/sealed-item.ts';
import type { Desk } from '../../src/mailbox/desk.ts';
import { receipts } from '../../src/mailbox/receipts.ts';
import { showIdentity } from '../../src/peers/identity.ts';
import { type Arrival, inspect } from '../../src/peers/inspect.ts';
import { accept } from '../../src/peers/pairing/accept.ts';
import { add } from '../../src/peers/pairing/add.ts';
import { announceRoute } from '../../src/peers/pairing/announce.ts';
import { ask } from '../../src/peers/pairing/ask.ts';
import { list } from '../../src/peers/pairing/list.ts';
import { remove } from '../../src/peers/pairing/remove.ts';
import { takeControl } from '../../src/peers/pairing/take.ts';
import type { Store } from '../../src/ports/store.ts';
import { Fault } from '../../src/protocol/errors.ts';
import type { WireRecord } from '../../src/protocol/wire/record.ts';
import { acceptanceFrom, openAccount, openTwo, type TestAccount } from './accounts.ts';
import type { FakeClock } from './clock.ts';
import { ok, post, refused } from './desk.ts';

let clock: FakeClock;
let a: TestAccount;
let b: TestAccount;
beforeEach(async () => {
  ({ clock, a, b } = await openTwo());
});

const devicesOf = (of: TestAccount, peer: TestAccount) => of.store.read((tx) => tx.devices.of(peer.key));
const place = (of: TestAccount) => of.store.read((tx) => tx.places.get());
const asks = async () => ok(await ask(a, { target: await b.address(), name: 'bob' }));
async function pairUp(): Promise<void> {
  await asks();
  await b.take(await a.send());
  ok(await accept(b, { key: a.key, name: 'alice' }));
  await a.take(await b.send());
}

/** The mail of an account, whose router is not there. */
const deskOf = ({ store, clock: time, random, wake, account }: TestAccount): Desk => ({
  store,
  clock: time,
  random,
  wake,
  account,
  router: { notify: async () => ({ delivered: false, reason: 'dispatched' }), discover: async () => [] },
});

/** Anything that the sender says, as it lies in the receiver's queue. */
function arrivalOf(from: TestAccount, to: TestAccount, type: 'query'): Arrival {
  const identity = ok(from.account.identity());
  const record: WireRecord = {
    type,
    from: from.key,
    to: to.key,
    time_ms: clock.nowMs(),
    id: '20212223-2425-2627-2829-2a2b2c2d2e2f',
    fields: { from_device: place(from)?.device as string, ids: ['20212223-2425-2627-2829-2a2b2c2d2e2f'] },
  };
  const queueId = place(to)?.device as string;
  const sealed = {
    record: signRecord(record, identity),
    to: to.key,
    queueId,
    ephemeral: from.random.bytes(32),
  };
  return { body: sealItem(sealed), via: 'device', queueId };
}

const inspected = (arrival: Arrival, at: TestAccount) =>
  inspect(arrival, {
    identity: ok(at.account.identity()),
    policy: ok(at.account.policy()),
    asked: (key) => at.store.read((tx) => tx.pairing.asked.of(key) !== undefined),
  });

describe('adding and removing by hand', () => {
  it('[PEER-016] the same again changes nothing; another key or another name is a conflict, and nothing is rekeyed', async () => {
    const carol = await openAccount(clock);
    ok(await add(a, { name: 'bob', key: b.key }));
    const text = a.policyText;
    ok(await add(a, { name: 'bob', key: b.key }));
    ok(await add(a, { name: 'BOB', key: b.key }));
    expect(refused(await add(a, { name: 'bob', key: carol.key })).code).toBe('conflict');
    expect(refused(await add(a, { name: 'Bob', key: carol.key })).code).toBe('conflict');
    expect(refused(await add(a, { name: 'robert', key: b.key })).code).toBe('conflict');
    expect(refused(await add(a, { name: 'me', key: a.key })).code).toBe('invalid_request');
    expect(refused(await add(a, { name: 'x', key: 'x'.repeat(43) })).code).toBe('invalid_request');
    expect(a.policyText).toBe(text);
  });

  it('of a name that was asked and has not answered is peer_not_paired for a letter, which is not stored', async () => {
    await asks();
    const desk = deskOf(a);
    for (const peer of ['bob', 'BOB', b.key])
      expect([peer, refused(await post(desk, { peer })).code]).toEqual([peer, 'peer_not_paired']);
    expect(refused(await post(desk, { peer: 'carol' })).code).toBe('unknown_peer');
    expect(a.store.read((tx) => tx.outbox.totals().count)).toBe(0);
  });

  it('holds from the next record on; what was on its way ends as peer_removed, and its history stays', async () => {
    await pairUp();
    const desk = deskOf(a);
    const sent = ok(await post(desk, { peer: 'bob' }));
    const arrival = arrivalOf(b, a, 'query');
    expect(inspected(arrival, a)).toMatchObject({ isPeer: true });
    ok(await remove(a, { name: 'bob' }));
    expect(inspected(arrival, a)).toBe('authorised');
    const { project, recipient, message_id } = sent;
    expect(ok(receipts(desk, { project, recipient, message_id })).receipts).toMatchObject([
      { receipt_kind: 'refused', value: 'peer_removed', source: 'outbox' },
    ]);
    expect(a.store.read((tx) => tx.outbox.totals().count)).toBe(0);
    expect(refused(await post(desk, { peer: 'bob' })).code).toBe('unknown_peer');
  });

  it('ends what was on its way, forgets where it was reached, and answers unknown_peer where there is none', async () => {
    await pairUp();
    expect(ok(await remove(a, { name: 'BOB' }))).toEqual({ name: 'bob', key: b.key });
    expect([a.peers, a.ended, devicesOf(a, b)]).toEqual([{}, [b.key], []]);
    expect(refused(await remove(a, { name: 'bob' })).code).toBe('unknown_peer');
    expect(refused(await remove(a, { name: b.key })).code).toBe('unknown_peer');
  });

  it('[PEER-105] with --rotate leaves the queue, and the peers that remain follow', async () => {
    const carol = await openAccount(clock);
    await pairUp();
    ok(await ask(carol, { target: await a.address(), name: 'alice' }));
    await a.take(await carol.send());
    ok(await accept(a, { key: carol.key, name: 'carol' }));
    await carol.take(await a.send());
    const before = place(a)?.device as string;
    const { device } = ok(await remove(a, { name: 'bob', rotate: true }));
    expect(device).toMatch(/^[0-9a-f]{32}$/);
    expect(device).not.toBe(before);
    expect(place(a)?.device).toBe(device);
    expect(a.store.read((tx) => tx.places.retired())).toEqual([`${a.key}.${before}`]);
    const told = await a.send();
    expect(told).toMatchObject([
      {
        queue: `${carol.key}.${place(carol)?.device}`,
        record: { type: 'route', fields: { from_device: device } },
      },
    ]);
    await clock.advance(1);
    await carol.take(told);
    expect(devicesOf(carol, a)[0]).toMatchObject({ device, relays: a.relays });
    // Also when the relays are others.
    expect(ok(await announceRoute(a, [1]))).toBe(false);
    expect(ok(await announceRoute(a, [1]))).toBe(false);
    a.relays = ['https://new.example'];
    expect(ok(await announceRoute(a, [1]))).toBe(true);
    await carol.take(await a.send());
    expect(devicesOf(carol, a)[0]).toMatchObject({ device, relays: ['https://new.example'] });
    expect(ok(await announceRoute(a, [1]))).toBe(false);
    // Of a stranger a route says nothing.
    const route = { ...told[0]?.record, from: b.key } as never;
    expect(await takeControl(carol, route, 'device')).toBe('done');
    expect(devicesOf(carol, b)).toEqual([]);
  });

  it('of one that was asked and has not answered withdraws the request', async () => {
    const { request_id } = await asks();
    expect(ok(await remove(a, { name: 'Bob' }))).toEqual({ name: 'bob', key: b.key });
    expect([a.jobs(), a.store.read((tx) => tx.pairing.asked.all())]).toEqual([[], []]);
    await takeControl(a, await acceptanceFrom(b, a, request_id), 'device');
    expect(a.peers).toEqual({});
  });

  it('that was cut off after the policy changed is completed by the key', async () => {
    await pairUp();
    const { store } = a;
    const broken: Store = { ...store, write: () => Promise.reject(new Fault('store_full', 'no space')) };
    const failing = Object.create(a, { store: { value: broken } }) as TestAccount;
    await expect(remove(failing, { name: 'bob' })).rejects.toMatchObject({
      code: 'store_full',
      message: expect.stringContaining(`remove ${b.key} to do so`),
    });
    expect([a.peers, devicesOf(a, b).length]).toEqual([{}, 1]);
    ok(await remove(a, { name: b.key }));
    expect([a.ended, devicesOf(a, b)]).toEqual([[b.key], []]);
  });
});

describe('the list', () => {
  it('takes a peer by its name in any case and by its exact key', async () => {
    for (const name of ['bob', 'BOB', 'bOb', b.key]) {
      ok(await add(a, { name: 'Bob', key: b.key }));
      expect(ok(await remove(a, { name })).name).toBe('Bob');
    }
    ok(await add(a, { name: 'Bob', key: b.key }));
    for (const name of ['bo', 'bob2', b.key.toLowerCase(), b.key.slice(0, 42)])
      expect([name, refused(await remove(a, { name })).code]).toEqual([name, 'unknown_peer']);
    // Named like another one's key.
    const carol = await openAccount(clock);
    ok(await add(a, { name: b.key, key: carol.key }));
    expect(refused(await remove(a, { name: b.key })).code).toBe('ambiguous_peer');
  });

  it('says of each peer what is known, of each that was asked whether a relay has it, and what the gate refused', async () => {
    await pairUp();
    const carol = await openAccount(clock);
    ok(await add(a, { name: 'carol', key: carol.key }));
    ok(await ask(a, { target: await (await openAccount(clock)).address(), name: 'dora' }));
    await a.store.write((tx) => tx.gate.refused('authorised', new Date(clock.nowMs()).toISOString()));
    const shown = ok(list(a));
    expect(shown).toMatchObject({
      key: a.key,
      peers: [
        { name: 'bob', key: b.key, state: 'live', devices: [{ device: place(b)?.device, relays: b.relays }] },
        { name: 'carol', state: 'unknown', last_heard_at: null, devices: [] },
      ],
      asked: [{ name: 'dora', sent: false }],
      requests: 0,
      refused: [{ step: 'authorised', count: 1 }],
    });
    await a.send();
    expect(ok(list(a)).asked).toMatchObject([{ name: 'dora', sent: true }]);
  });
});

describe('the door', () => {
  it('is another one after --new-door, and the old one is to be purged', async () => {
    const first = ok(await showIdentity(a, { newDoor: false }));
    expect(ok(await showIdentity(a, { newDoor: false }))).toEqual(first);
    const second = ok(await showIdentity(a, { newDoor: true }));
    expect(second).toMatchObject({ key: first.key, device: first.device, fingerprint: first.fingerprint });
    expect(second.door).not.toBe(first.door);
    expect(a.store.read((tx) => tx.places.retired())).toEqual([`${a.key}.${first.door}`]);
    // Whoever asks at the old one reaches nobody.
    ok(await ask(b, { target: first.address as string, name: 'alice' }));
    expect(await a.take(await b.send())).toEqual([]);
  });

  it('takes no route', async () => {
    await pairUp();
    const route = { ...(await acceptanceFrom(b, a)), type: 'route' } as never;
    const before = devicesOf(a, b);
    expect(await takeControl(a, route, 'door')).toBe('done');
    expect(devicesOf(a, b)).toEqual(before);
  });
});
