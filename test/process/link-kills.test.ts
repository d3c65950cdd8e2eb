// A relay and routers that die by -9 between any two steps, roads that are cut, machines that are off: whatever was answered arrives, and
// each message is stored once.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { until } from './home.ts';
import {
  askToPair,
  factsAt,
  identityOf,
  inDialogue,
  type Machine,
  openMachine,
  openRelay,
  pairByDialogue,
  peersOf,
  type RelayProcess,
  requestAt,
} from './machines.ts';
import { numbered, pendingAt, send, stored } from './many.ts';
import { openRoad, type Road } from './road.ts';

let relay: RelayProcess;
let road: Road;
const ending: (() => Promise<void>)[] = [];
beforeEach(async () => {
  const opened = await openRelay();
  ending.push(opened.end);
  relay = opened;
  road = await openRoad(relay);
  ending.push(road.end);
});
afterEach(async () => {
  for (const end of ending.splice(0).reverse()) await end();
});

async function machine(name: string): Promise<Machine> {
  const made = await openMachine(name, road.origin);
  ending.push(() => made.end());
  await made.startRouter();
  return made;
}

const again = async (): Promise<void> => {
  await relay.kill();
  await relay.start();
};
/** What it got from the relay comes again at once where the relay begins anew; else after its lease of 30 s. */
const bothAgain = async (of: Machine): Promise<void> => {
  await Promise.all([of.killRouter(), relay.kill()]);
  await relay.start();
  await of.startRouter();
};
const restarted: [string, (asker: Machine, accepter: Machine) => Promise<void>][] = [
  ['the relay', again],
  ['the relay and the asker’s router', (asker) => bothAgain(asker)],
  ['the relay and the accepter’s router', (_, accepter) => bothAgain(accepter)],
];

describe('killed with -9 after each step and started again', () => {
  it.each(restarted)(
    '%s: nothing of pairing, question, answer and receipts is lost',
    async (_, kill) => {
      const [alice, bob] = [await machine('alice'), await machine('bob')];
      const next = () => kill(alice, bob);
      await askToPair(alice, 'bob', (await identityOf(bob)).address);
      await next();
      const { key, fingerprint } = await requestAt(bob);
      await inDialogue(bob, fingerprint, 'accept_pair', { key, name: 'alice' });
      await next();
      await until('alice knows', async () => (await peersOf(alice)).length === 1, 60_000);
      const words = ['message', 'send', '--project', 'shop', '--payload-stdin'];
      const question = [...words, '--sender', 'alice', '--recipient', 'reader', '--peer', 'bob'];
      const sent = await alice.ask([...question, '--idempotency-key', 'q'], 'question');
      await next();
      await until('the question is stored', () => stored(bob).length === 1, 60_000);
      const inbox = ['--project', 'shop', '--recipient', 'reader'];
      const mail = (await bob.ask(['inbox', 'receive', ...inbox])).messages as Record<string, string>[];
      const { message_id = '', receipt } = mail[0] ?? {};
      await bob.ask(['inbox', 'acknowledge', ...inbox, '--receipts-stdin'], JSON.stringify([receipt]));
      await next();
      const scope = sent as { project: string; recipient: string; message_id: string };
      const told = async () => (await factsAt(alice, scope)).kinds;
      await until('each fact is told', async () => (await told()).length === 4, 60_000);
      const answer = [...words, '--sender', 'reader', '--recipient', 'alice', '--peer', 'alice'];
      await bob.ask([...answer, '--reply-to', message_id, '--idempotency-key', 'a'], 'answer');
      await next();
      await until('the answer is stored', () => stored(alice).length === 1, 60_000);
      expect(await told()).toEqual([
        `relay_accept ${road.origin}`,
        'stored unknown',
        'intake ingested',
        'ack acknowledged',
      ]);
      await until('the relay holds nothing', () => relay.items() === 0, 40_000);
      expect([stored(bob), stored(alice)]).toEqual([['question'], ['answer']]);
    },
    240_000,
  );
});

describe('[INB-004, MSG-070] the reader’s router, killed with -9', () => {
  const afterwards = async (): Promise<void> => {
    await until('the relay is told to drop it', () => relay.items() === 0, 60_000);
  };

  it.each([
    ['between commit and settling', '/settle', 'out', 1],
    ['before its commit', '"token"', 'in', 0],
  ] as const)(
    '%s: the message is on the relay still, and in the end there is one record',
    async (_, text, way, records) => {
      const [alice, bob] = [await machine('alice'), await machine('bob')];
      await pairByDialogue(alice, bob);
      await until('the relay holds nothing', () => relay.items() === 0);
      const seen = road.stopAt(text, way);
      await send(alice, 'bob', ['hello']);
      await seen;
      expect([stored(bob).length, relay.items(bob.key)]).toEqual([records, 1]);
      await bothAgain(bob);
      await afterwards();
      expect(stored(bob)).toEqual(['hello']);
    },
    120_000,
  );

  it.each([
    ['between commit and settling', '/settle', 'out', 1],
    ['before its commit', '"token"', 'in', 0],
  ] as const)(
    '%s: so it is with a request to pair and its notice',
    async (_, text, way, records) => {
      const [alice, bob] = [await machine('alice'), await machine('bob')];
      const { address, door } = await identityOf(bob);
      await until('the door is there', () => relay.queues().includes(`${bob.key}.${door}`));
      const kept = () => [
        bob.rows('SELECT * FROM pair_request').length,
        bob.rows('SELECT * FROM pairing_notice').length,
      ];
      const seen = road.stopAt(text, way);
      await askToPair(alice, 'bob', address);
      await seen;
      expect([...kept(), relay.items(bob.key)]).toEqual([records, records, 1]);
      await bothAgain(bob);
      await afterwards();
      expect(kept()).toEqual([1, 1]);
    },
    120_000,
  );
});

describe('mail that has to wait', () => {
  it('for its reader’s machine, which is off', async () => {
    const [alice, bob] = [await machine('alice'), await machine('bob')];
    await pairByDialogue(alice, bob);
    await bob.endRouter();
    await send(alice, 'bob', ['hello']);
    await until('the relay has it', () => relay.items() > 0);
    expect(await pendingAt(alice)).toEqual({ count: 0 });
    await bob.startRouter();
    await until('it comes', () => stored(bob).length > 0);
    await until('the relay holds nothing', () => relay.items() === 0);
    expect(stored(bob)).toEqual(['hello']);
  }, 60_000);

  it('[REL-074] for a road that is cut both ways, 1,000 of them: all arrive by themselves, each is stored once', async () => {
    const [alice, bob] = [await machine('alice'), await machine('bob')];
    await pairByDialogue(alice, bob);
    await send(alice, 'bob', ['before']);
    await until('it comes', () => stored(bob).length === 1);
    await until('alice knows that', async () => (await pendingAt(alice)).count === 0);
    road.cut();
    const [there, back] = [numbered('there', 500), numbered('back', 500)];
    await Promise.all([send(alice, 'bob', there), send(bob, 'alice', back)]);
    const waiting = await Promise.all([alice, bob].map(pendingAt));
    for (const { count, why } of waiting) {
      expect(count).toBe(500);
      expect(why).toContain(`the relay ${road.origin} `);
    }
    expect([stored(bob), stored(alice)]).toEqual([['before'], []]);
    road.mend();
    const all = () => stored(bob).length >= 501 && stored(alice).length >= 500;
    await until('all arrive', all, 60_000);
    await until('the relay holds nothing', () => relay.items() === 0, 60_000);
    expect(stored(bob).toSorted()).toEqual(['before', ...there].toSorted());
    expect(stored(alice).toSorted()).toEqual(back.toSorted());
    for (const one of [alice, bob])
      await until('nothing is pending', async () => (await pendingAt(one)).count === 0);
  }, 240_000);
});
