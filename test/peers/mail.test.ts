// Mail of other machines as its reader meets it: ids, receipts, history, status, and who is shown as its sender.

import { beforeEach, describe, expect, it } from 'vitest';
import { acknowledge } from '../../src/mailbox/acknowledge.ts';
import type { Caller } from '../../src/mailbox/desk.ts';
import { history } from '../../src/mailbox/history.ts';
import { intake } from '../../src/mailbox/intake.ts';
import { receive } from '../../src/mailbox/receive.ts';
import { status } from '../../src/mailbox/status.ts';
import { endEntry } from '../../src/peers/carry.ts';
import { discoverPeer } from '../../src/peers/discover.ts';
import type { OutboxRow } from '../../src/ports/peers.ts';
import { inertJson } from '../../src/protocol/untrusted.ts';
import { shortRead } from '../../src/surfaces/cli/read.ts';
import { feedLine } from '../../src/surfaces/live/lines.ts';
import { attach, difference, ok, post, posted, refused, sessionCaller } from '../contract/desk.ts';
import { byText } from './by-text.ts';
import { forged, freshId, message, openGate, type Porch } from './forge.ts';
import { type Machine, World } from './machines.ts';

const session = sessionCaller('s1');

let world: World;
let alice: Machine;
let bob: Machine;
let carol: Machine;
let porch: Porch;
beforeEach(async () => {
  world = new World();
  world.relay();
  alice = await world.machine('alice');
  bob = await world.machine('bob');
  carol = await world.machine('carol');
  await world.befriend(alice, bob);
  await world.befriend(carol, bob);
  await attach(bob, 's1', { lease_ms: 300_000 });
  porch = openGate(bob);
});

const waiting = (caller: Caller = session) => ok(receive(bob, { project: 'shop' }, caller)).messages;
const ack = async (...messages: { sender: string; msg_id: string }[]) =>
  ok(await acknowledge(bob, { project: 'shop', messages }, session));
const talk = async (over: object = {}, caller: Caller = session) =>
  ok(await history(bob, { project: 'shop', peer: 'alice', ...over }, caller));
const said = async (over: object = {}) => (await talk(over)).messages.map(({ payload }) => payload);

/** From the machine to Bob, one second later. */
async function comes(from: Machine, text: string, over: object = {}, id = freshId()): Promise<string> {
  await world.clock.advance(1_000);
  await porch.admit(message(bob, from, { payload: JSON.stringify(text), ...over }, { id }));
  return id;
}

async function linked(): Promise<void> {
  for (const machine of [alice, bob, carol]) machine.start();
  await world.pass(2_000);
}

describe('ids', () => {
  it('[MSG-069] two peers may give the same: two messages, each with an id of this store, and its sender’s beside it', async () => {
    const id = await comes(alice, 'of alice');
    await comes(carol, 'of carol', {}, id);
    const local = await posted(bob, { payload: 'of here' });
    // A local id is none that a peer could name.
    await comes(carol, 'with a local id', {}, freshId());
    const got = waiting();
    expect(got.map(({ payload }) => payload)).toEqual(['of alice', 'of carol', 'of here', 'with a local id']);
    expect(new Set(got.map(({ message_id }) => message_id)).size).toBe(4);
    expect(got.slice(0, 2).map(({ origin }) => [origin?.sender_key, origin?.message_id])).toEqual([
      [alice.key, id],
      [carol.key, id],
    ]);
    for (const { message_id } of got) expect(message_id).toMatch(/^msg_/);
    expect(local.message_id).toMatch(/^msg_/);
  });

  it('[MSG-069] an answer names the message by the id that its sender knows, and one of others stays here', async () => {
    await linked();
    const question = ok(await post(alice, { peer: 'bob', payload: 'question' }));
    await world.pass(3_000);
    const [got] = waiting();
    const local = await posted(bob, { payload: 'local' });
    await comes(carol, 'of carol');
    const ofCarol = waiting().find(({ payload }) => payload === 'of carol');
    const answers = [got?.message_id, local.message_id, ofCarol?.message_id, 'unknown'];
    for (const [nth, reply_to] of answers.entries())
      ok(
        await post(bob, {
          peer: 'alice',
          recipient: 'alice',
          sender: 'bob',
          payload: `answer ${nth}`,
          reply_to,
        }),
      );
    await world.pass(3_000);
    const at = ok(
      receive(alice, { project: 'shop', recipient: 'alice' }, { transport: 'cli', source_host: 'cli' }),
    );
    expect(at.messages.map(({ payload, reply_to }) => [payload, reply_to])).toEqual([
      ['answer 0', question.message_id],
      ['answer 1', undefined],
      ['answer 2', undefined],
      ['answer 3', undefined],
    ]);
    expect(
      bob.rows("SELECT reply_to FROM message WHERE sender = 'bob' ORDER BY seq").map((row) => row.reply_to),
    ).toEqual(answers);
  });
});

describe('receipts', () => {
  it('[MSG-086] name the peer’s key and id, or local and the local id, and do as they are', async () => {
    const id = await comes(alice, 'remote');
    const local = await posted(bob);
    const keys = waiting().map(({ receipt }) => receipt);
    expect(keys).toEqual([
      { sender: alice.key, msg_id: id },
      { sender: 'local', msg_id: local.message_id },
    ]);
    expect(await ack(...keys)).toMatchObject({ acknowledged: 2, refused: [] });
    expect(waiting()).toEqual([]);
  });

  it('[INB-075, MSG-088] are of exactly one sender: a petname, another’s key and later arrivals are left alone', async () => {
    const id = await comes(alice, 'of alice');
    await comes(carol, 'of carol', {}, id);
    const before = bob.counts();
    const others = [
      { sender: 'alice', msg_id: id },
      { sender: 'local', msg_id: id },
      { sender: bob.key, msg_id: id },
      { sender: alice.key, msg_id: freshId() },
    ];
    expect(await ack(...others)).toEqual({ acknowledged: 0, unchanged: 4, refused: [] });
    expect(difference(before, bob.counts())).toEqual({});
    const key = { sender: alice.key, msg_id: id };
    expect(await ack(key, key)).toEqual({ acknowledged: 1, unchanged: 1, refused: [] });
    await comes(alice, 'later');
    expect(await ack(key)).toEqual({ acknowledged: 0, unchanged: 1, refused: [] });
    expect(waiting().map(({ payload }) => payload)).toEqual(['of carol', 'later']);
    const meant = await comes(alice, 'for another session', { intended_session: 's2' });
    expect(await ack({ sender: alice.key, msg_id: meant })).toEqual({
      acknowledged: 0,
      unchanged: 0,
      refused: [{ sender: alice.key, msg_id: meant, code: 'intended_for_other_session' }],
    });
  });

  it('[MSG-088] of two who acknowledge the same at once count once', async () => {
    const id = await comes(alice, 'once');
    const other = { ...bob, store: await bob.secondStore() };
    const request = { project: 'shop', messages: [{ sender: alice.key, msg_id: id }] };
    const answers = await Promise.all([
      acknowledge(bob, request, session),
      acknowledge(other, request, session),
    ]);
    expect(answers.map((one) => ok(one).acknowledged).toSorted((a, b) => a - b)).toEqual([0, 1]);
  });
});

describe('a conversation', () => {
  it('[INB-082] holds both directions, newest last, by name, by key, and by local name after those', async () => {
    await comes(alice, 'in 1', { from_session: 'a1', sender: 'somebody' });
    await world.clock.advance(1_000);
    ok(await post(bob, { peer: 'alice', recipient: 'x', sender: 'bob', payload: 'out 1' }, session));
    await comes(alice, 'in 2');
    await comes(alice, 'for another', { recipient: 'robert' });
    await comes(carol, 'of carol', { sender: 'alice' });
    ok(await post(bob, { peer: 'carol', recipient: 'alice', sender: 'bob', payload: 'to carol' }, session));
    ok(
      await post(
        bob,
        { peer: 'alice', recipient: 'x', sender: 'other', payload: 'of another' },
        sessionCaller('s9', 'x'),
      ),
    );
    await world.clock.advance(1_000);
    ok(await post(bob, { peer: 'alice', recipient: 'y', sender: 'any label', payload: 'out 2' }, session));
    await posted(bob, { payload: 'of a local alice' });
    const all = ['in 1', 'out 1', 'in 2', 'out 2'];
    for (const peer of ['alice', 'ALICE', alice.key]) expect(await said({ peer })).toEqual(all);
    const { messages } = await talk();
    expect(messages.map(({ direction }) => direction)).toEqual(['in', 'out', 'in', 'out']);
    for (const limit of [1, 2, 3, 4, 100]) expect(await said({ limit })).toEqual(all.slice(-limit));
    // The owner's name goes before a local one; without it the local one is met.
    bob.peers = bob.peers.map((peer) => ({ ...peer, name: peer.name === 'alice' ? 'alicia' : peer.name }));
    expect(await said()).toEqual(['of a local alice']);
    await porch.admit(message(bob, bob.identity, { payload: '"of another device"' }));
    ok(await post(bob, { peer: 'self', recipient: 'z', sender: 'bob', payload: 'to it' }, session));
    expect((await said({ peer: 'self' })).toSorted(byText)).toEqual(['of another device', 'to it']);
  });

  it('[INB-082] of one moment is in the order of ids, and twenty where no number is given', async () => {
    for (let nth = 0; nth < 25; nth += 1)
      await porch.admit(message(bob, alice, { payload: JSON.stringify(`m${nth}`) }));
    const { messages } = await talk({ limit: 100 });
    const ids = messages.map(({ message_id }) => message_id);
    expect([ids.length, ids]).toEqual([25, ids.toSorted()]);
    expect((await talk()).messages.map(({ message_id }) => message_id)).toEqual(ids.slice(-20));
  });

  it('[INB-083] goes by the key: a peer that is called otherwise now hides nothing', async () => {
    await comes(alice, 'before');
    bob.peers = bob.peers.map((peer) => (peer.key === alice.key ? { ...peer, name: 'alicia' } : peer));
    await comes(alice, 'after');
    expect(await said({ peer: 'alicia' })).toEqual(['before', 'after']);
    const { messages } = await talk({ peer: 'alicia' });
    expect(messages.map(({ origin }) => origin?.peer)).toEqual(['alicia', 'alicia']);
    // One that is no peer any more is found by its key.
    bob.peers = [];
    expect(await said({ peer: alice.key })).toEqual(['before', 'after']);
  });

  it('[INB-087] has a message once, however often it came', async () => {
    const id = await comes(alice, 'once');
    for (let nth = 0; nth < 3; nth += 1) await comes(alice, 'once', {}, id);
    expect([await said(), porch.counts()]).toEqual([['once'], { replay: 3 }]);
  });

  it('[MSG-089] has superseded and acknowledged ones, marked, and changes nothing', async () => {
    const task = { task_id: 't', status: 'update', from_session: 'a1' };
    await comes(alice, 'u1', task);
    const second = await comes(alice, 'u2', task);
    await ack({ sender: alice.key, msg_id: second });
    await world.clock.advance(1_000);
    ok(await post(bob, { peer: 'alice', recipient: 'x', sender: 'bob', payload: 'out' }, session));
    const before = [bob.counts(), bob.wake.touches];
    for (const peer of ['alice', alice.key]) {
      const { messages } = await talk({ peer });
      expect(messages).toMatchObject([
        { payload: 'u1', superseded_by: messages[1]?.message_id },
        { payload: 'u2', delivery_state: 'receiver_acknowledged' },
        { payload: 'out', direction: 'out', delivery_state: 'pending' },
      ]);
    }
    expect(await said({ peer: 'self' })).toEqual([]);
    expect([bob.counts(), bob.wake.touches]).toEqual(before);
    await posted(bob, { payload: 'local', sender: 'somebody' });
    expect(await said({ peer: 'somebody' })).toEqual(['local']);
    await posted(bob, { sender: 'bob', recipient: 'someone', payload: 'to one here' });
    expect(await said({ peer: 'someone' })).toEqual(['to one here']);
  });
});

describe('the status', () => {
  const asked = (msg_id: string, sender?: string) =>
    status(bob, { msg_id, ...(sender !== undefined && { sender }) }, session);

  it('[INB-089] is found by the sender’s id or the local one: state and body of what came', async () => {
    const id = await comes(alice, 'inbound');
    const [got] = waiting();
    for (const answer of [asked(id), asked(id, alice.key), asked(got?.message_id as string)])
      expect(ok(answer)).toMatchObject({
        direction: 'in',
        payload: 'inbound',
        delivery_state: 'receiver_stored',
        receipts: [],
      });
    await ack({ sender: alice.key, msg_id: id });
    expect(ok(asked(id))).toMatchObject({ delivery_state: 'receiver_acknowledged' });
  });

  it('[INB-089] of what went out is every receipt so far, and that nothing is known where none came', async () => {
    await linked();
    await alice.stop();
    const sent = ok(await post(bob, { peer: 'alice', recipient: 'alice', sender: 'bob' }, session));
    const unknown = { note: 'receiver acknowledgement is unknown' };
    expect(ok(asked(sent.message_id))).toMatchObject({
      direction: 'out',
      receipts: [],
      delivery_state: 'pending',
      ...unknown,
    });
    await world.pass(2_000);
    expect(ok(asked(sent.message_id))).toMatchObject({
      delivery_state: 'bus_accepted',
      receipts: [{ receipt_kind: 'relay_accept' }],
      ...unknown,
    });
    alice.start();
    await attach(alice, 'a1', { principal_id: 'alice' });
    await world.pass(4_000);
    expect(ok(asked(sent.message_id))).toMatchObject({ delivery_state: 'receiver_stored', ...unknown });
    const reader = sessionCaller('a1', 'alice');
    const [got] = ok(receive(alice, { project: 'shop' }, reader)).messages;
    ok(await acknowledge(alice, { project: 'shop', messages: [got?.receipt as never] }, reader));
    await world.pass(4_000);
    const after = ok(asked(sent.message_id)) as { receipts: { receipt_kind: string }[] };
    expect(after).not.toHaveProperty('note');
    expect(after).not.toHaveProperty('payload');
    expect(after.receipts.map(({ receipt_kind }) => receipt_kind)).toEqual([
      'relay_accept',
      'stored',
      'intake',
      'ack',
    ]);
  });

  it('[INB-089] of an id that two gave lists them, and of none is not found', async () => {
    const id = await comes(alice, 'of alice');
    await comes(carol, 'of carol', {}, id);
    expect(ok(asked(id))).toEqual({
      candidates: [
        { sender: alice.key, msg_id: id },
        { sender: carol.key, msg_id: id },
      ],
    });
    expect(ok(asked(id, carol.key))).toMatchObject({ payload: 'of carol' });
    for (const [msg_id, sender] of [[freshId()], [id, bob.key], [id, 'local'], [id, 'alice']] as const)
      expect(refused(asked(msg_id, sender)).code).toBe('not_found');
    expect(refused(status(bob, { msg_id: id, sender: carol.key }, sessionCaller('s9', 'x'))).code).toBe(
      'not_found',
    );
  });
});

describe('what a peer tells of a message', () => {
  it('is 64 facts at most; how its way ended here is told all the same', async () => {
    const { message_id } = ok(await post(alice, { peer: 'bob' }));
    const entry = alice.store.read((tx) => tx.outbox.of(message_id)) as OutboxRow;
    const fact = (nth: number) => ({
      message_id: entry.wire_id,
      fact: { kind: 'disposition', detail: 'accepted' } as const,
      time_ms: 1_000 + nth,
    });
    const tell = (from: number, count: number) =>
      openGate(alice).admit(
        forged(alice, bob.identity, {
          type: 'receipt',
          fields: {
            from_device: bob.device,
            facts: Array.from({ length: count }, (_, nth) => fact(from + nth)),
          },
        }),
      );
    const kept = () => alice.rows('SELECT source FROM receipt').map(({ source }) => source);
    for (const [from, count, expected] of [
      [0, 63, 63],
      [63, 1, 64],
      [64, 1, 64],
    ] as const) {
      await tell(from, count);
      expect(kept()).toHaveLength(expected);
    }
    await alice.store.write((tx) => endEntry(tx, alice, entry, 'discarded'));
    expect(kept().filter((source) => source === 'outbox')).toHaveLength(1);
  });
});

describe('the session that a peer names', () => {
  it('[INB-098] steers coalescing and answers, and changes neither trust nor who wrote it', async () => {
    const task = { task_id: 't', status: 'update' };
    await comes(alice, 'a1 1', { ...task, from_session: 'a1' });
    await comes(alice, 'a2 1', { ...task, from_session: 'a2' });
    await comes(carol, 'carol as a1', { ...task, from_session: 'a1' });
    await comes(alice, 'a1 2', { ...task, from_session: 'a1' });
    // Even that of the reader itself, or of another peer, is but a word.
    await comes(alice, 'as s1', { from_session: 's1' });
    const got = waiting();
    expect(got.map(({ payload }) => payload)).toEqual(['as s1', 'a2 1', 'carol as a1', 'a1 2']);
    for (const { payload, origin, provenance, receipt } of got) {
      const key = payload === 'carol as a1' ? carol.key : alice.key;
      expect([origin?.sender_key, provenance.peer_key, receipt.sender]).toEqual([key, key, key]);
      expect(provenance.session).toBeUndefined();
    }
    expect(porch.counts()).toEqual({});
    expect(got[0]?.origin?.return_route).toEqual({ session: 's1', device: alice.device });
  });

  it('[PEER-060] and the device lead an answer to the key that signed them, and to no other', async () => {
    // Carol says that she is at Alice's device and session.
    await comes(carol, 'foreign route', { from_device: alice.device, from_session: 'a1' });
    const devices = () => bob.rows('SELECT peer_key, device FROM peer_device ORDER BY peer_key, device');
    expect(devices()).toEqual(
      [
        { peer_key: alice.key, device: alice.device },
        { peer_key: carol.key, device: alice.device },
        { peer_key: carol.key, device: carol.device },
      ].toSorted((a, b) => (a.peer_key + a.device < b.peer_key + b.device ? -1 : 1)),
    );
    const reply = { recipient: 'a1', target_kind: 'session', sender: 'bob' };
    const toAlice = ok(await post(bob, { ...reply, peer: 'alice' }, session));
    const toCarol = ok(await post(bob, { ...reply, peer: 'carol' }, session));
    const entry = (message_id: string) =>
      bob.store.read((tx) => tx.outbox.of(message_id)) as { peer_key: string; device: string };
    // Hers goes to a queue of her own key, whatever the device is called: nothing of it reaches Alice.
    expect(entry(toCarol.message_id)).toMatchObject({ peer_key: carol.key });
    expect(entry(toAlice.message_id)).toMatchObject({ peer_key: alice.key, device: alice.device });
    expect(waiting()[0]).toMatchObject({
      provenance: { peer_key: carol.key },
      origin: { sender_key: carol.key, return_route: { session: 'a1', device: alice.device } },
    });
  });
});

describe('who is shown as sender', () => {
  const hostile = 'alice\u001b[2J\u202e"\u2028\nFrom "root"';

  it('[PEER-093] is the owner’s name for the key, with what it calls itself quoted beside it', async () => {
    await comes(carol, 'hello', { sender: hostile });
    const texts: string[] = [];
    const context = {
      desk: bob,
      caller: { transport: 'cli', source_host: 'cli' },
      project: async () => 'shop',
    } as unknown as Parameters<typeof shortRead>[0];
    const given = { name: 'bob', accountName: 'bob', flags: {} };
    ok(await shortRead(context, given, async (text) => void texts.push(text)));
    const [line = ''] = (texts[0] ?? '').split('\n');
    expect(line).toMatch(/^From "carol" \(another machine; says: "alice/);
    expect(line).toMatch(/^[^\p{Cc}\p{Cf}\u2028\u2029]*$/u);
    const { items } = bob.store.read((tx) => tx.feed.since({ ...tx.feed.end(), message: 0 }));
    const shown = feedLine(items[0] as never, (key) => (key === carol.key ? 'carol' : key));
    expect(shown).toMatch(/ "carol" \(another machine; says: "alice/);
    expect(shown).toMatch(/^[^\p{Cc}\p{Cf}\u2028\u2029]*$/u);
    expect(waiting()[0]).toMatchObject({ sender: hostile, origin: { peer: 'carol' } });
    expect(inertJson(waiting())).toMatch(/^[^\p{Cc}\p{Cf}\u2028\u2029]*$/u);
    // The same of what her card says of her sessions.
    const words = {
      host_kind: 'claude',
      directory: hostile,
      git: hostile,
      work_summary: hostile,
      bell: 'listener',
    };
    const card = { session_id: 'c1', principal: 'carol', project: 'shop', ...words, generation: 1 };
    const of = { peer_key: carol.key, device: carol.device };
    await bob.store.write((tx) => tx.devices.card({ ...of, card_ms: world.clock.nowMs(), sessions: [card] }));
    const found = ok(await discoverPeer(bob, { peer: 'carol', project: 'shop' }));
    expect(found).toMatchObject({ peer: 'carol', devices: [{ sessions: [{ work_summary: hostile }] }] });
    expect(inertJson(found)).toMatch(/^[^\p{Cc}\p{Cf}\u2028\u2029]*$/u);
  });

  it('takes in what was printed under the local id alone', async () => {
    await comes(alice, 'hello');
    const [got] = waiting();
    const of = { project: 'shop', recipient: 'bob', idempotency_key: 'k', state: 'fetched' } as const;
    const foreign = { ...of, message_id: got?.origin?.message_id as string };
    expect(refused(await intake(bob, foreign, session)).code).toBe('not_available');
    ok(await intake(bob, { ...of, message_id: got?.message_id as string }, session));
    expect(waiting()).toEqual([]);
  });
});
