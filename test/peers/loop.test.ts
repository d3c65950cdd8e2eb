// The loop guard over the link: what comes in too deep in a chain, too often, or says nothing is kept, read and counted, and wakes nobody.

import { beforeEach, describe, expect, it } from 'vitest';
import { listenerBell } from '../../src/hosts/claude-code/bell.ts';
import { acknowledge } from '../../src/mailbox/acknowledge.ts';
import { runNotifier } from '../../src/mailbox/notifier.ts';
import { receive } from '../../src/mailbox/receive.ts';
import { ringForHandOff } from '../../src/mailbox/ring.ts';
import type { Message } from '../../src/protocol/message.ts';
import { concat } from '../../src/protocol/wire/bytes.ts';
import { dispatch } from '../../src/sessions/dispatch.ts';
import { inspectStore } from '../../src/store/inspection.ts';
import { locksIn } from '../../src/store/lock.ts';
import { link } from '../../src/surfaces/doctor/linked.ts';
import { feedLine } from '../../src/surfaces/live/lines.ts';
import { atEnd, attach, ok, post, refused, sessionCaller } from '../contract/desk.ts';
import { fault } from '../contract/rung.ts';
import { freshId, message, openGate, type Porch } from './forge.ts';
import { type Machine, World } from './machines.ts';

const minuteMs = 60_000;
const session = sessionCaller('s1');

let world: World;
let alice: Machine;
let bob: Machine;
let porch: Porch;
beforeEach(async () => {
  world = new World();
  world.relay();
  [alice, bob] = [await world.machine('alice'), await world.machine('bob')];
  await world.befriend(alice, bob);
  await attach(bob, 's1', { lease_ms: 300_000 });
  porch = openGate(bob);
});

/** Bob's router and notifier as they are: whatever is stored is rung for where it may be. */
function ringsFor(
  machine: Machine,
  ringing = { caller: session, project: 'shop' },
): { stored(messages: readonly Message[]): Promise<void>; rung(): number } {
  const bell = listenerBell(machine);
  machine.host = async (handOff) => {
    const outcome = await ringForHandOff(machine, ringing, bell, handOff, fault);
    return outcome.outcome === 'accepted' ? outcome : { outcome: 'timeout' };
  };
  const { stop } = runNotifier(machine, locksIn(machine.directory), ringing, bell, fault);
  atEnd(stop);
  return {
    stored: async (messages) => {
      for (const { project, delivery_id } of messages) await dispatch(machine.board, project, delivery_id);
      await world.clock.advance(1_000);
    },
    rung: () => machine.counts().listener_row as number,
  };
}

const got = () => ok(receive(bob, { project: 'shop' }, session));
/** Whether what came may wake. */
async function wakes(over: object): Promise<boolean> {
  const { stored } = await porch.admit(message(bob, alice, over));
  expect(stored).toHaveLength(1);
  return bob.store.read((tx) => tx.messages.byId(stored[0]?.message_id as string))?.attention as boolean;
}

const looping = (machine: Machine) =>
  machine.store
    .read((tx) => tx.feed.since({ ...tx.feed.end(), looped: 0 }))
    .items.filter(({ kind }) => kind === 'looped');

async function doctorSays(machine: Machine) {
  const value = await inspectStore({ ...machine, path: machine.path });
  if (value === undefined) throw new Error('there is a store');
  return link({ nowMs: machine.clock.nowMs(), store: { state: 'found', value } });
}

describe('a chain of answers', () => {
  it('[PEER-081] is signed with each message: another text is a hop more of the same root, and a person begins anew', async () => {
    await attach(alice, 'a1', { principal_id: 'alice', lease_ms: 300_000 });
    const prompted = { alice: world.clock.nowMs(), bob: world.clock.nowMs() };
    alice.lastPromptMs = () => prompted.alice;
    bob.lastPromptMs = () => prompted.bob;
    alice.start();
    bob.start();
    await world.pass(2_000);
    const ofAlice = sessionCaller('a1', 'alice');
    const toBob = (over: object) =>
      post(alice, { sender: 'alice', recipient: 'bob', peer: 'bob', ...over }, ofAlice);
    const toAlice = (over: object) =>
      post(bob, { sender: 'bob', recipient: 'alice', peer: 'alice', ...over }, session);
    const newest = (machine: Machine) =>
      machine.rows('SELECT message_id, hops, root_id, payload FROM message ORDER BY seq DESC LIMIT 1')[0];
    const taken = async (machine: Machine, caller: typeof session) => {
      await world.pass(3_000);
      await ringsFor(machine, { caller, project: 'shop' }).stored(machine.rang);
      const { messages } = ok(receive(machine, { project: 'shop' }, caller));
      const done = messages.map(({ receipt }) => receipt);
      ok(await acknowledge(machine, { project: 'shop', messages: done }, caller));
      await world.pass(1_000);
    };

    ok(await toBob({ payload: 'build it' }));
    const { root_id } = newest(alice) as { root_id: string };
    await taken(bob, session);
    // No reply, and in other words: what it was woken by is its cause.
    expect(ok(await toAlice({ payload: 'I am at it' })).hops).toBe(1);
    await taken(alice, ofAlice);
    expect(ok(await toBob({ payload: 'then hurry' })).hops).toBe(2);
    await taken(bob, session);
    for (const machine of [alice, bob])
      expect(newest(machine)).toMatchObject({ hops: 2, root_id, payload: '"then hurry"' });
    // One signature covers both: that of another depth, or another root, is none.
    const signed = { id: freshId(), timeMs: world.clock.nowMs() };
    let signature = new Uint8Array();
    const record = (bytes: Uint8Array) => {
      signature = bytes.slice(-64);
      return bytes;
    };
    const honest = message(bob, alice, { hops: 2, root_id }, { ...signed, record });
    const resigned = (bytes: Uint8Array) => concat([bytes.slice(0, -64), signature]);
    for (const over of [
      { hops: 0, root_id },
      { hops: 2, root_id: freshId() },
    ])
      await porch.admit(message(bob, alice, over, { ...signed, record: resigned }));
    expect(porch.counts()).toEqual({ signature: 2 });
    expect((await porch.admit(honest)).stored).toMatchObject([{ hops: 2 }]);

    // A person's prompt at bob's.
    await world.pass(1_000);
    prompted.bob = world.clock.nowMs();
    const { message_id } = newest(bob) as { message_id: string };
    expect(ok(await toAlice({ payload: 'by my own wish' })).hops).toBeUndefined();
    const answer = ok(await toAlice({ payload: 'and this answers', reply_to: message_id }));
    expect(answer.hops).toBeUndefined();
    await world.pass(3_000);
    expect(newest(alice)).toMatchObject({ hops: 0, payload: '"and this answers"' });
    expect(newest(alice)?.root_id).not.toBe(root_id);
  });

  it('[PEER-082] of 33 over two machines: from hop 32 on nobody is woken, and people hear of it once', async () => {
    const { stored, rung } = ringsFor(bob);
    await attach(alice, 'a1', { principal_id: 'alice', lease_ms: 300_000 });
    alice.start();
    bob.start();
    await world.pass(2_000);
    const sides = [
      {
        from: alice,
        caller: sessionCaller('a1', 'alice'),
        to: bob,
        names: { sender: 'alice', recipient: 'bob', peer: 'bob' },
      },
      { from: bob, caller: session, to: alice, names: { sender: 'bob', recipient: 'alice', peer: 'alice' } },
    ];
    const newest = (machine: Machine) =>
      String(machine.rows('SELECT message_id FROM message ORDER BY seq DESC LIMIT 1')[0]?.message_id);
    for (let hop = 0; hop <= 31; hop += 1) {
      const { from, caller, names } = sides[hop % 2] as (typeof sides)[0];
      const reply_to = hop === 0 ? {} : { reply_to: newest(from) };
      const sent = ok(await post(from, { ...names, ...reply_to, payload: `answer ${hop}` }, caller));
      expect(sent.hops ?? 0).toBe(hop);
      await world.pass(3_000);
    }
    await alice.stop();
    await bob.stop();
    const last = bob.rows(
      'SELECT hops, root_id FROM message WHERE peer_key IS NOT NULL ORDER BY seq DESC LIMIT 1',
    )[0];
    const first = alice.rows('SELECT root_id FROM message ORDER BY seq LIMIT 1')[0];
    expect(last).toEqual({ hops: 30, root_id: first?.root_id });
    expect(alice.store.read((tx) => tx.messages.byId(newest(alice)))).toMatchObject({
      message: { hops: 31 },
      attention: true,
    });
    // This machine sends no 32nd; what another one sends all the same wakes nobody here.
    const names = sides[0]?.names;
    expect(
      refused(await post(alice, { ...names, reply_to: newest(alice) }, sessionCaller('a1', 'alice'))).code,
    ).toBe('loop_limit');
    expect(bob.rang).toHaveLength(16);
    await stored(bob.rang);
    expect(rung()).toBeGreaterThan(0);
    expect([looping(bob), (await doctorSays(bob)).level]).toEqual([[], 'pass']);
    const deep = { root_id: String(first?.root_id), from_session: 'a1' };
    for (const hops of [32, 33, 255]) {
      const admitted = await porch.admit(message(bob, alice, { ...deep, hops, payload: `"answer ${hops}"` }));
      await stored(admitted.stored);
    }
    await world.clock.advance(2 * minuteMs);
    expect(
      bob.rows(
        'SELECT count(*) AS n FROM reservation_cover v JOIN delivery d USING (delivery_id) JOIN message m USING (message_id) WHERE m.hops > 31',
      ),
    ).toEqual([{ n: 0 }]);
    expect(
      bob.rows(
        'SELECT count(*) AS n FROM attempt a JOIN delivery d USING (delivery_id) JOIN message m USING (message_id) WHERE m.hops > 31',
      ),
    ).toEqual([{ n: 0 }]);
    expect(
      got()
        .messages.map(({ payload }) => payload)
        .slice(-3),
    ).toEqual(['answer 32', 'answer 33', 'answer 255']);
    const notices = looping(bob);
    expect(notices).toHaveLength(1);
    expect(feedLine(notices[0] as never, () => 'alice')).toMatch(
      /looping {3}\S+ {2}"alice" \(another machine; says: "alice"\) → "bob" {2}\(answer 32 in a row: kept, and wakes nobody; said once for this chain\)$/,
    );
    await porch.admit(message(bob, alice, { hops: 40 }));
    expect(looping(bob)).toHaveLength(2);
    expect(await doctorSays(bob)).toMatchObject({
      level: 'warn',
      text: expect.stringContaining('beyond 31 within 7 days: 2;'),
    });
    world.clock.jump(7 * 24 * 60 * minuteMs);
    expect(await doctorSays(bob)).toMatchObject({ level: 'pass' });
  });

  it.each([
    [30, true],
    [31, true],
    [32, false],
    [33, false],
  ])('that comes with hop %d wakes: %s', async (hops, expected) => {
    expect(await wakes({ hops })).toBe(expected);
  });
});

describe('the rate of a pair', () => {
  const answers = async (count: number, over: (nth: number) => object, timeMs = world.clock.nowMs()) => {
    const woke: boolean[] = [];
    for (let nth = 0; nth < count; nth += 1) {
      const item = message(bob, alice, { hops: 1, ...over(nth) }, { timeMs });
      const { stored, verdicts } = await porch.admit(item);
      expect(verdicts).toEqual(['settle']);
      woke.push(
        bob.store.read((tx) => tx.messages.byId(stored[0]?.message_id as string))?.attention as boolean,
      );
    }
    return woke;
  };
  const wakingOnes = (woke: readonly boolean[]) => woke.filter((one) => one).length;

  it('[PEER-084] of one session is 30 in ten minutes: the 31st is kept and wakes nobody, until the window has passed', async () => {
    const of = () => ({ from_session: 'a1' });
    const woke = await answers(31, of);
    expect(woke).toEqual([...Array<boolean>(30).fill(true), false]);
    expect(got().remaining + got().messages.length).toBe(31);
    // Another session of hers, another recipient, and what is no answer go on.
    expect(await answers(1, () => ({ from_session: 'a2' }))).toEqual([true]);
    expect(await answers(1, () => ({ ...of(), recipient: 'robert' }))).toEqual([true]);
    expect(await answers(1, () => ({ ...of(), hops: 0 }))).toEqual([true]);
    await world.clock.advance(10 * minuteMs - 1);
    expect(await answers(1, of)).toEqual([false]);
    await world.clock.advance(1);
    expect(await answers(1, of)).toEqual([true]);
  });

  it('[PEER-084] of all sessions of a peer is 120, by whatever names it calls them; nothing is dropped', async () => {
    const woke = await answers(122, (nth) => ({ from_session: `invented ${nth}` }));
    expect([wakingOnes(woke), woke[119], woke[120], woke[121]]).toEqual([120, true, false, false]);
    expect([bob.counts().message, porch.counts()]).toEqual([122, {}]);
    const carol = await world.machine('carol');
    await world.befriend(bob, carol);
    const { stored } = await porch.admit(message(bob, carol, { hops: 1, from_session: 'invented 1' }));
    expect(bob.store.read((tx) => tx.messages.byId(stored[0]?.message_id as string))?.attention).toBe(true);
  });

  it('[PEER-084] is by what comes, not by the times that it gives itself', async () => {
    const nowMs = world.clock.nowMs();
    expect(wakingOnes(await answers(31, () => ({ from_session: 'a1' }), nowMs - 11 * minuteMs))).toBe(30);
    expect(await answers(1, () => ({ from_session: 'a1' }), nowMs - 86_400_000)).toEqual([false]);
  });
});

describe('a reply that only acknowledges', () => {
  const forms = [
    'ok',
    'okay',
    'ack',
    'acknowledged',
    'thanks',
    'thank you',
    'got it',
    'noted',
    'NO_REPLY',
    '+1',
  ];
  const signs = ['\u{1f44d}', '\u{1f44d}\u{1f3fd}', '\u2705', '\u2714\ufe0f', '\u2713'];
  const words = [...forms.flatMap((form) => [form, form.toUpperCase(), `${form}.`, `${form}!`]), ...signs];

  it.each(words)(
    '[PEER-085] %s is quiet, here and over the link; without reply_to it wakes',
    async (text) => {
      const id = freshId();
      await porch.admit(message(bob, alice, {}, { id }));
      const payload = JSON.stringify(text);
      expect(await wakes({ payload, reply_to: id })).toBe(false);
      // It may answer what was exchanged with another machine of this account.
      expect(await wakes({ payload, reply_to: freshId() })).toBe(false);
      expect(await wakes({ payload })).toBe(true);
      expect(await wakes({ payload, reply_to: id, status: 'result' })).toBe(true);
      const [first] = got().messages;
      const local = (over: object) => post(bob, { payload: text, ...over });
      expect(ok(await local({ reply_to: first?.message_id }))).toMatchObject({ quieted: 'loop_guard' });
      expect(ok(await local({}))).not.toHaveProperty('quieted');
      expect(ok(await local({ reply_to: first?.message_id, status: 'result' }))).not.toHaveProperty(
        'quieted',
      );
      const toPeer = { peer: 'alice', payload: text, reply_to: first?.message_id };
      expect(ok(await post(bob, toPeer))).toMatchObject({ quieted: 'loop_guard' });
    },
  );

  it.each(['', ' ', '\n\t '])('[PEER-085] blank is quiet, whatever it answers: %j', async (text) => {
    expect(await wakes({ payload: JSON.stringify(text) })).toBe(false);
    expect(ok(await post(bob, { payload: text }))).toMatchObject({ quieted: 'loop_guard' });
  });

  it('[PEER-085] what was sent quiet is; other words, and more of them, are none', async () => {
    const id = freshId();
    await porch.admit(message(bob, alice, {}, { id }));
    expect(await wakes({ quiet: true })).toBe(false);
    for (const text of [
      'ok?',
      'ok, and now?',
      'not ok',
      'thanks for the fish',
      '\u{1f44d}\u{1f44d}',
      '{"ok":true}',
    ])
      expect([text, await wakes({ payload: JSON.stringify(text), reply_to: id })]).toEqual([
        text,
        text !== 'ok?',
      ]);
  });
});
