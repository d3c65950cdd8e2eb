import { describe, expect, it } from 'vitest';
import { acknowledge } from '../../src/mailbox/acknowledge.ts';
import { dispose } from '../../src/mailbox/dispose.ts';
import { receipts } from '../../src/mailbox/receipts.ts';
import { receive } from '../../src/mailbox/receive.ts';
import { attach, ok, post, sessionCaller } from '../contract/desk.ts';
import { World } from './machines.ts';

async function pair() {
  const world = new World();
  const relay = world.relay();
  const alice = await world.machine('alice');
  const bob = await world.machine('bob');
  await world.befriend(alice, bob);
  alice.start();
  bob.start();
  await world.pass(1_000);
  return { world, relay, alice, bob };
}

describe('a message to a peer', () => {
  it('is told step by step: relay, stored, intake, ack, disposition', async () => {
    const { world, relay, alice, bob } = await pair();
    await attach(bob, 's-bob');
    const sent = ok(await post(alice, { peer: 'bob' }));
    expect(sent).toMatchObject({ peer: 'bob', delivery_state: 'pending' });
    await world.pass(3_000);
    const caller = sessionCaller('s-bob');
    const [got, ...more] = ok(receive(bob, { project: 'shop' }, caller)).messages;
    expect(more).toEqual([]);
    expect(got).toMatchObject({
      sender: 'alice',
      payload: 'hello bob',
      provenance: { transport: 'link', peer_key: alice.key },
      origin: { sender_key: alice.key, peer: 'alice', return_route: { device: alice.device } },
      receipt: { sender: alice.key },
    });
    expect(bob.rang.map(({ message_id }) => message_id)).toEqual([got?.message_id]);
    const scope = { project: 'shop', recipient: 'bob', message_id: sent.message_id };
    const kinds = () =>
      ok(receipts(alice, scope)).receipts.map(({ receipt_kind, value }) => `${receipt_kind} ${value}`);
    expect(kinds()).toEqual([`relay_accept ${relay.origin}`, 'stored live']);
    ok(await acknowledge(bob, { messages: [got?.receipt as object], project: 'shop' }, caller));
    ok(
      await dispose(
        bob,
        {
          project: 'shop',
          recipient: 'bob',
          message_id: got?.message_id as string,
          value: 'completed',
          idempotency_key: 'd1',
        },
        caller,
      ),
    );
    await world.pass(3_000);
    expect(kinds()).toEqual([
      `relay_accept ${relay.origin}`,
      'stored live',
      'intake ingested',
      'ack acknowledged',
      'disposition completed',
    ]);
    expect(ok(receipts(alice, scope)).delivery_state).toBe('receiver_acknowledged');
    expect(relay.depth()).toBe(0);
  });
});
