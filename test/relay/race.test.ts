// A poll that begins while an item is committed: whichever comes first, the item is in its answer.

import { expect, it } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import { Polls } from '../../src/relay/polls.ts';
import { alice, itemAt, queueAt, startScene } from './scene.ts';

const overStore = Number(process.env.POSTBELL_RACES ?? 10_000);
const overHttp = Math.ceil(overStore / 10);
/** Far from what a wake takes, and from the 55 s that a lost one would. */
const lostMs = 5_000;

it(`a poll never sleeps through an item that is committed as it begins [REL-017]`, async () => {
  const scene = await startScene();
  try {
    await scene.register(alice);
    const queue = queueAt(alice);
    const { store } = scene;
    const polls = new Polls(store, systemClock);
    const body = new Uint8Array([1]);
    let longestMs = 0;
    const raced = async (post: () => Promise<unknown>, poll: () => Promise<string[]>): Promise<void> => {
      const begun = performance.now();
      const [tokens] = await Promise.all([poll(), post()]);
      longestMs = Math.max(longestMs, performance.now() - begun);
      expect(tokens).toHaveLength(1);
      await store.settle(queue, { ack: tokens, defer: [] });
    };
    for (let nth = 1; nth <= overStore; nth += 1) {
      // The commit falls before, into, or after the look, by a number of turns.
      const turns = async (count: number): Promise<void> => {
        for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      };
      await raced(
        () => turns(nth % 3).then(() => store.post(queue, { id: itemAt(nth), ttlMs: 60_000, body })),
        () =>
          turns(nth % 5)
            .then(() => polls.poll(queue, { waitMs: 55_000, countMax: 1 }, () => {}))
            .then(({ items }) => items.map(({ token }) => token)),
      );
    }
    for (let nth = 1; nth <= overHttp; nth += 1)
      await raced(
        () => scene.post(queue, nth),
        () => scene.items(alice, '?wait_ms=55000').then((items) => items.map(({ token }) => token)),
      );
    expect(longestMs).toBeLessThan(lostMs);
  } finally {
    await scene.close();
  }
}, 120_000);
