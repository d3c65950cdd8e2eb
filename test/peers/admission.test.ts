// From the relay into the inbox: what cannot be kept now stays on the relay and comes when it can; what was kept comes once; and what is
// refused is counted, and nowhere shown.

import { copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { beforeEach, describe, expect, it } from 'vitest';
import { listenerBell } from '../../src/hosts/claude-code/bell.ts';
import { acknowledge } from '../../src/mailbox/acknowledge.ts';
import { receipts } from '../../src/mailbox/receipts.ts';
import { receive } from '../../src/mailbox/receive.ts';
import { reconcile } from '../../src/mailbox/ring.ts';
import { list } from '../../src/peers/pairing/list.ts';
import type { Store } from '../../src/ports/store.ts';
import { Fault } from '../../src/protocol/errors.ts';
import { inspectStore } from '../../src/store/inspection.ts';
import { openStore } from '../../src/store/open.ts';
import { listText } from '../../src/surfaces/cli/peer-texts.ts';
import { link } from '../../src/surfaces/doctor/linked.ts';
import { store as storeRow } from '../../src/surfaces/doctor/stored.ts';
import {
  atEnd,
  attach,
  difference,
  ok,
  post,
  posted,
  type Scene,
  sessionCaller,
  temporaryDirectory,
} from '../contract/desk.ts';
import { failingStore } from '../contract/failing.ts';
import { fault } from '../contract/rung.ts';
import { damage } from '../process/raised.ts';
import { flipped, forged, freshId, message, openGate, stranger, toldBy } from './forge.ts';
import { type Machine, noSuchFile, World } from './machines.ts';
import type { ModelRelay } from './model-relay.ts';

const session = sessionCaller('s1');

let world: World;
let relay: ModelRelay;
let alice: Machine;
let bob: Machine;
beforeEach(async () => {
  world = new World();
  relay = world.relay();
  [alice, bob] = [await world.machine('alice'), await world.machine('bob')];
  await world.befriend(alice, bob);
  await attach(bob, 's1', { lease_ms: 300_000 });
  alice.start();
});

const got = () => ok(receive(bob, { project: 'shop' }, session)).messages.map(({ payload }) => payload);

/** Bob's process, with what it finds. */
async function runs(over: Partial<Machine> = {}): Promise<void> {
  Object.assign(bob, over);
  bob.start();
  await world.pass(2_000);
}

const comesTo = async (machine: Machine, over: object = {}) => {
  const sent = ok(await post(alice, { peer: machine.name, ...over }));
  await world.pass(3_000);
  return sent;
};

/** The store of Bob as it is, in a file of its own whose pages are then damaged. */
async function damagedStore(): Promise<{
  file: string;
  whole: Buffer;
  store: Store;
  open(): Promise<Store>;
}> {
  const writer = new BetterSqlite3(bob.path);
  writer.pragma('wal_checkpoint(TRUNCATE)');
  writer.close();
  const file = path.join(temporaryDirectory(), 'postbell.db');
  copyFileSync(bob.path, file);
  const whole = readFileSync(file);
  const open = async () => {
    const store = await openStore({ path: file, clock: world.clock, random: bob.random });
    atEnd(() => store.close());
    return store;
  };
  const store = await open();
  damage(file);
  return { file, whole, store, open };
}

const owner = JSON.stringify(['principal', 'shop', 'bob']);
const fillUp = async (): Promise<string> => {
  const { delivery_id, message_id } = await posted(bob, { payload: 'filler' });
  const bytes = 33_554_432;
  await bob.store.write((tx) =>
    tx.linkRecords.insert({ delivery_id, peer_key: alice.key, owner, bytes, sent_ms: world.clock.nowMs() }),
  );
  return message_id;
};

describe('[INB-008] what cannot be kept now stays on the relay until it can', () => {
  /** Each makes it impossible, and answers what makes it possible again. */
  const causes: Record<string, () => Promise<() => unknown>> = {
    'the inbox is full': async () => {
      const msg_id = await fillUp();
      await runs();
      return async () => {
        const messages = [{ sender: 'local', msg_id }];
        ok(await acknowledge(bob, { project: 'shop', messages }, session));
        // It is pruned by the next arrival, once it is a day old; nothing else makes room here.
        await bob.store.write((tx) =>
          tx.linkRecords.prune(
            alice.key,
            owner,
            world.clock.nowMs(),
            new Date(world.clock.nowMs()).toISOString(),
          ),
        );
      };
    },
    'the quota is used up': async () => {
      await runs({ quota: 3 });
      return async () => {
        await bob.stop();
        await runs({ quota: 1_000 });
      };
    },
    'the store is locked beyond its wait': async () => {
      // Tries again after whole milliseconds, as a real clock counts.
      const random = { bytes: (count: number) => new Uint8Array(count).fill(255) };
      const store = await openStore({ path: bob.path, clock: world.clock, random });
      atEnd(() => store.close());
      await runs({ store });
      const rival = new BetterSqlite3(bob.path);
      atEnd(() => rival.close());
      rival.exec('BEGIN IMMEDIATE');
      return () => rival.exec('ROLLBACK');
    },
    'the store cannot be written': async () => {
      const { database, store } = failingStore(bob as Scene);
      let broken = true;
      Object.defineProperty(database, 'left', { get: () => (broken ? 0 : 9), set: () => {} });
      await runs({ store });
      return () => {
        broken = false;
      };
    },
    'the store is damaged': async () => {
      const { file, whole, store, open } = await damagedStore();
      await runs({ store });
      return async () => {
        await bob.stop();
        bob.store.close();
        writeFileSync(file, whole);
        await runs({ store: await open() });
      };
    },
  };

  it.each(Object.keys(causes))('%s', async (cause) => {
    await runs();
    await bob.stop();
    const repair = await (causes[cause] as () => Promise<() => unknown>)();
    ok(await post(alice, { peer: 'bob', payload: 'kept' }));
    await world.pass(20_000);
    expect(relay.depth(bob.queue)).toBe(1);
    expect(bob.rows("SELECT count(*) AS n FROM message WHERE transport = 'link'")).toEqual([{ n: 0 }]);
    await repair();
    await world.pass(90_000);
    expect([relay.depth(bob.queue), got()]).toEqual([0, ['kept']]);
  });
});

it('[INB-009] an owner that is full holds up no other on the same queue', async () => {
  await attach(bob, 's2', { principal_id: 'robert' });
  await fillUp();
  await runs();
  // More than a relay gives out at once, all of it before the one for Robert.
  for (let nth = 0; nth < 70; nth += 1) ok(await post(alice, { peer: 'bob' }));
  ok(await post(alice, { peer: 'bob', recipient: 'robert', payload: 'for robert' }));
  await world.pass(30_000);
  const robert = sessionCaller('s2', 'robert');
  expect(ok(receive(bob, { project: 'shop' }, robert)).messages.map(({ payload }) => payload)).toEqual([
    'for robert',
  ]);
  expect([relay.depth(bob.queue), got()]).toEqual([70, ['filler']]);
});

describe('[INB-010] a damaged store', () => {
  it('is neither replaced nor renamed, lets nothing in, and is reported', async () => {
    const { file, store, open } = await damagedStore();
    const damaged = readFileSync(file);
    const machine = { ...bob, store };
    await expect(post(machine)).rejects.toThrow(Fault);
    const porch = openGate(machine);
    const { verdicts, stored } = await porch.admit(message(bob, alice));
    expect([verdicts, stored]).toEqual([[{ defer_s: 30 }], []]);
    expect(porch.gate.shut).toMatch(/./);
    await expect(open()).rejects.toMatchObject({ code: 'store_unreadable' });
    store.close();
    expect(readFileSync(file).equals(damaged)).toBe(true);
    expect(readdirSync(path.dirname(file)).filter((name) => !/-(wal|shm)$/.test(name))).toEqual([
      'postbell.db',
    ]);
    const options = { path: file, clock: world.clock, random: bob.random };
    const looked = await inspectStore(options).then(
      (value) => ({ state: 'found', value }),
      ({ code, message: why }: Fault) => ({ state: 'closed', why: `${code}: ${why}` }),
    );
    expect(storeRow({ store: looked, sqlite: { state: 'found' }, storePath: file } as never)).toMatchObject({
      level: 'fail',
      text: expect.stringMatching(/the store is damaged: |^store_unreadable: /),
    });
  });
});

it('[INB-006] what comes again after a restart adds and changes nothing, and is told to be stored again', async () => {
  await runs();
  const sent = await comesTo(bob, { payload: 'once' });
  const [item] = relay.posts.filter(({ queue }) => queue === bob.queue);
  const keys = ok(receive(bob, { project: 'shop' }, session)).messages.map(({ receipt }) => receipt);
  ok(await acknowledge(bob, { project: 'shop', messages: keys }, session));
  await world.pass(3_000);
  await bob.stop();
  await runs({ store: await bob.secondStore() });
  await reconcile(bob, { caller: session, project: 'shop' }, listenerBell(bob), fault);
  const [before, rows] = [bob.counts(), bob.rows('SELECT * FROM receipt')];
  const answers = () => relay.posts.filter(({ queue }) => queue === alice.queue).length;
  const answered = answers();
  relay.inject(bob.queue, item?.body as Uint8Array);
  await world.pass(3_000);
  await reconcile(bob, { caller: session, project: 'shop' }, listenerBell(bob), fault);
  const { gate_refusal: _, ...others } = difference(before, bob.counts());
  expect([others, bob.rows('SELECT * FROM receipt'), got()]).toEqual([{}, rows, []]);
  expect([bob.rang.length, answers() - answered]).toEqual([1, 1]);
  const scope = { project: 'shop', recipient: 'bob', message_id: sent.message_id };
  expect(ok(receipts(alice, scope)).delivery_state).toBe('receiver_acknowledged');
});

it.each([
  ['principal', 'newcomer'],
  ['session', 'never-seen'],
] as const)(
  '[INB-011] mail for a %s that was never seen is stored, and said to be for nobody known',
  async (target_kind, recipient) => {
    await runs();
    const sent = await comesTo(bob, { recipient, target_kind, payload: 'for later' });
    const scope = { project: 'shop', recipient, message_id: sent.message_id };
    expect(ok(receipts(alice, scope)).receipts).toMatchObject([
      { receipt_kind: 'relay_accept' },
      { receipt_kind: 'stored', value: 'unknown', peer_key: bob.key },
    ]);
    // Whoever starts later finds it.
    const principal = target_kind === 'principal' ? recipient : 'somebody';
    const id = target_kind === 'session' ? recipient : 's9';
    await attach(bob, id, { principal_id: principal });
    const { messages } = ok(receive(bob, { project: 'shop' }, sessionCaller(id, principal)));
    expect(messages.map(({ payload }) => payload)).toEqual(['for later']);
  },
);

it('[INB-012] while the list of peers cannot be read, mail stays on the relay, and comes when it can', async () => {
  await runs();
  bob.policyFault = noSuchFile;
  ok(await post(alice, { peer: 'bob', payload: 'kept' }));
  await world.pass(300_000);
  expect([relay.depth(bob.queue), got(), bob.counts().gate_refusal]).toEqual([1, [], 0]);
  expect(bob.logged.filter(({ event }) => event === 'nothing can be taken in')).toHaveLength(1);
  bob.policyFault = undefined;
  await world.pass(60_000);
  expect([relay.depth(bob.queue), got()]).toEqual([0, ['kept']]);
});

it('[INB-023] what was consumed, made obsolete or rung for stays so after a restart of everything', async () => {
  const porch = openGate(bob);
  const [done, ...task] = [freshId(), freshId(), freshId()] as [string, string, string];
  const update = { task_id: 't', status: 'update', from_session: 'a1' } as const;
  const items = [
    message(bob, alice, { payload: '"done"' }, { id: done }),
    message(bob, alice, { ...update, payload: '"old"' }, { id: task[0] }),
    message(bob, alice, { ...update, payload: '"new"' }, { id: task[1] }),
    message(bob, alice, { payload: '"waits"' }),
  ];
  await porch.admit(...items);
  ok(await acknowledge(bob, { project: 'shop', messages: [{ sender: alice.key, msg_id: done }] }, session));
  await world.clock.advance(1_000);
  const ringing = { caller: session, project: 'shop' };
  await reconcile(bob, ringing, listenerBell(bob), fault);
  const state = () => [
    bob.rows('SELECT * FROM reservation'),
    bob.rows('SELECT * FROM delivery ORDER BY seq'),
    bob.rows('SELECT * FROM receipt ORDER BY seq'),
    bob.rows('SELECT * FROM listener_row'),
  ];
  const before = state();
  expect(before[0]).toHaveLength(1);
  const next = { ...bob, store: await bob.secondStore() };
  bob.store.close();
  await openGate(next).admit(...items);
  await world.clock.advance(10_000);
  await reconcile(next, ringing, listenerBell(next), fault);
  expect(state()).toEqual(before);
  const { messages } = ok(receive(next, { project: 'shop' }, session));
  expect(messages.map(({ payload }) => payload)).toEqual(['waits', 'new']);
});

describe('what the gate refused', () => {
  it('[PEER-026] is counted by its step in doctor and in the list of peers; no body is logged or shown', async () => {
    await runs();
    await world.pass(1_000);
    const word = 'SENTINEL';
    const payload = JSON.stringify(word);
    const late = { timeMs: world.clock.nowMs() - 86_500_000 };
    const id = freshId();
    const good = message(bob, alice, { payload: '"good"' }, { id });
    const sent = message(bob, alice, { payload, sender: word }, {});
    const fact = { message_id: freshId(), fact: { kind: 'ack', detail: 'ack' } as const, time_ms: 1_000 };
    const items: Uint8Array[] = [
      message(bob, alice, { payload }, { queueId: 'f'.repeat(32) }),
      message(bob, alice, { payload }, { record: flipped(-1) }),
      message(bob, alice, { payload }, { to: stranger.key }),
      message(bob, stranger, { payload, sender: word }),
      message(bob, stranger, { payload, project: word }),
      message(bob, alice, { payload }, late),
      good,
      message(bob, alice, { payload, sender: word }, { id }),
      message(bob, alice, { payload, task_id: word }, { body: flipped(12) }),
      message(bob, alice, { payload, content_type: word }),
      forged(bob, alice.identity, {
        type: 'receipt',
        fields: { from_device: alice.device, facts: [fact] },
      }),
    ];
    for (const body of items) {
      relay.inject(bob.queue, body);
      await world.pass(1_000);
    }
    const expected = {
      item: 1,
      signature: 1,
      addressee: 1,
      authorised: 2,
      fresh: 1,
      replay: 1,
      fields: 2,
      receipt: 1,
    };
    const answer = ok(list(bob as never));
    expect(Object.fromEntries(answer.refused.map(({ step, count }) => [step, count]))).toEqual(expected);
    const value = await inspectStore({ path: bob.path, clock: world.clock, random: bob.random });
    const row = link({ nowMs: world.clock.nowMs(), store: { state: 'found', value: value as never } });
    const texts = [listText(answer), row.text];
    for (const [step, count] of Object.entries(expected))
      for (const text of texts) expect(text).toMatch(new RegExp(`\\b${step}\\s+${count}\\b`));
    expect(JSON.stringify([texts, bob.logged, answer])).not.toContain(word);
    const tables = Object.keys(bob.counts()).map((table) => bob.rows(`SELECT * FROM "${table}"`));
    expect(JSON.stringify(tables)).not.toContain(word);
    expect(got()).toEqual(['good']);
    // The scan finds what is there.
    relay.inject(bob.queue, sent);
    await world.pass(1_000);
    expect(JSON.stringify(bob.rows('SELECT * FROM message'))).toContain(word);
  });

  it('[PEER-078] is told to a peer with its reason, and ends what he sent; a stale one is signed afresh, and clocks are named', async () => {
    const porch = openGate(bob);
    const told = async (item: (id: string) => Uint8Array) => {
      const id = freshId();
      await porch.admit(item(id));
      return toldBy(bob).filter(({ wire_id }) => wire_id === id);
    };
    const long = (body: Uint8Array) => {
      const at = Buffer.from(body).indexOf(Buffer.from([11, 0, 0, 0, 5]));
      const label = Buffer.alloc(801, 0x61);
      const length = Buffer.from([11, 0, 0, 3, 33]);
      return Buffer.concat([body.subarray(0, at), length, label, body.subarray(at + 10)]);
    };
    const late = { timeMs: world.clock.nowMs() - 86_400_001 };
    const device = 'c'.repeat(32);
    for (const [reason, item] of [
      ['stale', (id: string) => message(bob, alice, {}, { id, ...late })],
      ['malformed', (id: string) => message(bob, alice, { privacy: 'public' }, { id })],
      ['too_large', (id: string) => message(bob, alice, {}, { id, body: long })],
      ['expired', (id: string) => message(bob, alice, { expires_at_ms: world.clock.nowMs() }, { id })],
      ['reserved', (id: string) => message(bob, alice, {}, { id, body: flipped(12) })],
    ] as const)
      expect(await told(item)).toMatchObject([{ fact: 'refused', detail: reason, device: alice.device }]);
    // The device that sent it is told, not the one that was heard of last.
    expect(await told((id) => message(bob, alice, { from_device: device }, { id, ...late }))).toMatchObject([
      { detail: 'stale', device },
    ]);

    await bob.stop();
    for (const detail of ['malformed', 'too_large', 'expired', 'policy', 'stale'] as const) {
      const { message_id } = ok(await post(alice, { peer: 'bob' }));
      const wire = alice.store.read((tx) => tx.outbox.of(message_id)?.wire_id) as string;
      await openGate(alice).admit(
        forged(alice, bob.identity, {
          type: 'receipt',
          fields: {
            from_device: bob.device,
            facts: [{ message_id: wire, fact: { kind: 'refused', detail }, time_ms: 1_000 }],
          },
        }),
      );
      const ended = alice.store.read((tx) => tx.outbox.of(message_id)?.ended_at) !== null;
      expect([detail, ended]).toEqual([detail, detail !== 'stale']);
    }
    const value = await inspectStore({ path: alice.path, clock: world.clock, random: alice.random });
    expect(
      link({ nowMs: world.clock.nowMs(), store: { state: 'found', value: value as never } }),
    ).toMatchObject({
      level: 'warn',
      hint: expect.stringContaining('compare the clocks'),
    });
  });
});
