// More mail to another machine than its queue at the relay holds, while the relay and both routers are killed with -9 again and again.

import { afterEach, expect, it } from 'vitest';
import { until } from '../process/home.ts';
import { type Machine, openMachine, openRelay, pairByDialogue } from '../process/machines.ts';
import { numbered, pendingAt, send, stored } from '../process/many.ts';

const count = 1_400;
const queueItemsMax = 1_024;
const killsMin = 40;

const ending: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ending.splice(0).reverse()) await end();
});

async function machine(name: string, origin: string): Promise<Machine> {
  const made = await openMachine(name, origin);
  ending.push(() => made.end());
  await made.startRouter();
  return made;
}

it('[REL-042] a full queue pushes back, and everybody dies at random: all arrives, each message is stored once', async () => {
  const relay = await openRelay();
  ending.push(relay.end);
  const [alice, bob] = [await machine('alice', relay.origin), await machine('bob', relay.origin)];
  await pairByDialogue(alice, bob);
  await until('the relay holds nothing', () => relay.items() === 0);
  await bob.endRouter();
  const texts = numbered('text', count);
  await send(alice, 'bob', texts);
  await until('the queue is full', () => relay.items() === queueItemsMax, 60_000);
  await until('alice is told', async () => /has no room left/.test((await pendingAt(alice)).why ?? ''));
  // What no relay took yet is kept here; how much the queue took and this machine had no time to write is taken again as the same.
  expect((await pendingAt(alice)).count).toBeGreaterThanOrEqual(count - queueItemsMax);
  await bob.startRouter();
  const kills = [
    async () => {
      await relay.kill();
      await relay.start();
    },
    async () => {
      await alice.killRouter();
      await alice.startRouter();
    },
    async () => {
      await bob.killRouter();
      await bob.startRouter();
    },
  ];
  const arrived = () => new Set(stored(bob)).size;
  let killed = 0;
  for (; killed < killsMin; killed += 1) {
    await kills[killed % kills.length]?.();
    // Sometimes before anything is done, sometimes in the middle of it.
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 700));
  }
  await until('all arrive', () => arrived() === count, 400_000);
  await until('the relay holds nothing', () => relay.items() === 0, 120_000);
  expect(stored(bob).toSorted()).toEqual(texts.toSorted());
  await until('nothing is pending', async () => (await pendingAt(alice)).count === 0);
}, 700_000);
