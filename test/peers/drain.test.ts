// How a queue of this account is emptied where the relay does not hear what was settled.

import { expect, it } from 'vitest';
import { receive } from '../../src/mailbox/receive.ts';
import { ok, post } from '../contract/desk.ts';
import { cli, type Machine, runningPair } from './machines.ts';

const inboxOf = (machine: Machine): unknown[] =>
  ok(receive(machine, { project: 'shop', recipient: 'bob' }, cli)).messages.map(({ payload }) => payload);

it('a settlement that fails holds nothing up: the items come again, add nothing, and what follows comes as ever', async () => {
  const { world, relay, alice, bob } = await runningPair();
  let lost = 0;
  relay.onSettle = () => {
    lost += 1;
    return relay.fail(503, 'store_unavailable');
  };
  ok(await post(alice, { peer: 'bob', payload: 'one', idempotency_key: 'k1' }));
  await world.pass(3_000);
  expect(inboxOf(bob)).toEqual(['one']);
  expect(lost).toBeGreaterThan(0);
  relay.onSettle = () => undefined;
  ok(await post(alice, { peer: 'bob', payload: 'two', idempotency_key: 'k2' }));
  await world.pass(3_000);
  expect(inboxOf(bob)).toEqual(['one', 'two']);
  // The first is given out again when its lease has ended.
  await world.pass(40_000);
  expect(relay.depth()).toBe(0);
  expect(inboxOf(bob)).toEqual(['one', 'two']);
});

it('a relay that never answers a settlement holds up the end of a router by no more than it may take', async () => {
  const { world, relay, alice, bob } = await runningPair();
  relay.onSettle = (signal) =>
    new Promise((resolve) =>
      signal?.addEventListener('abort', () => resolve(relay.fail(503, 'store_unavailable'))),
    );
  ok(await post(alice, { peer: 'bob', payload: 'one' }));
  await world.pass(3_000);
  expect(inboxOf(bob)).toEqual(['one']);
  const before = world.clock.elapsedMs();
  await bob.stop();
  expect(world.clock.elapsedMs() - before).toBeLessThanOrEqual(2_000);
});

it('a relay that ends each poll at once, with nothing, does not keep this machine busy; the log says it once', async () => {
  const { world, relay, alice, bob } = await runningPair();
  relay.endsPolls = true;
  relay.polls = 0;
  await world.pass(60_000);
  // Each of four queues is asked some ten times, ever more seldom.
  expect(relay.polls).toBeLessThan(4 * 14);
  for (const { logged } of [alice, bob])
    expect(logged.filter(({ event }) => event === 'polls end at once with nothing')).toHaveLength(2);
  relay.endsPolls = false;
  ok(await post(alice, { peer: 'bob', payload: 'one' }));
  await world.pass(61_000);
  expect(inboxOf(bob)).toEqual(['one']);
});
