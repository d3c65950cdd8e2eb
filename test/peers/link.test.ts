import { describe, expect, it } from 'vitest';
import { acknowledge } from '../../src/mailbox/acknowledge.ts';
import { dispose } from '../../src/mailbox/dispose.ts';
import { receipts } from '../../src/mailbox/receipts.ts';
import { receive } from '../../src/mailbox/receive.ts';
import { Refusal } from '../../src/protocol/errors.ts';
import type { LinkState } from '../../src/router/link/link.ts';
import { relays } from '../../src/surfaces/doctor/account.ts';
import { attach, ok, post, sessionCaller } from '../contract/desk.ts';
import { cli, type Machine, runningPair, World } from './machines.ts';

describe('a message to a peer', () => {
  it('is told step by step: relay, stored, intake, ack, disposition', async () => {
    const { world, relay, alice, bob } = await runningPair();
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

const dayMs = 86_400_000;

describe('a relay that is down', () => {
  it('for a day, while its reader is off: the mail waits at its sender, then at the relay, and is stored once when he is back', async () => {
    const { world, relay, alice, bob } = await runningPair();
    await bob.stop();
    relay.breakDown();
    const sent = ok(await post(alice, { peer: 'bob' }));
    await world.pass(dayMs);
    const scope = { project: 'shop', recipient: 'bob', message_id: sent.message_id };
    const told = () => ok(receipts(alice, scope)).receipts.map(({ receipt_kind }) => receipt_kind);
    expect([told(), relay.depth(bob.queue)]).toEqual([[], 0]);
    relay.down = undefined;
    // No pause between two tries is longer.
    await world.pass(360_000);
    expect([told(), relay.depth(bob.queue)]).toEqual([['relay_accept'], 1]);
    // It is posted again until it is known to be stored, as the same item.
    await world.pass(7_200_000);
    expect(relay.depth(bob.queue)).toBe(1);
    bob.start();
    await world.pass(5_000);
    const mail = ok(receive(bob, { project: 'shop', recipient: 'bob' }, cli)).messages;
    expect(mail.map(({ payload }) => payload)).toEqual(['hello bob']);
    await world.pass(60_000);
    expect(told()).toEqual(['relay_accept', 'stored']);
    expect(relay.depth()).toBe(0);
  });

  it('[REL-068] for ten minutes is logged twice: when it fails, and when it answers again; doctor names it with its error', async () => {
    const { world, relay, alice } = await runningPair();
    const lines = () => alice.logged.map(({ event, fields }) => ({ event, fields }));
    expect(lines()).toEqual([]);
    const why = `the relay ${relay.origin} cannot be reached`;
    relay.breakDown();
    ok(await post(alice, { peer: 'bob' }));
    await world.pass(600_000);
    const down = { event: 'relay', fields: { relay: relay.origin, why } };
    expect(lines()).toEqual([down]);
    const since = stateOf(alice).relays[0]?.since;
    expect(doctorOf(alice)).toMatchObject({ level: 'warn', text: `${why} (since ${since})` });
    relay.down = undefined;
    await world.pass(120_000);
    expect(lines()).toEqual([
      down,
      { event: 'relay', fields: { relay: relay.origin, why: 'answers again' } },
    ]);
    expect(doctorOf(alice)).toMatchObject({ level: 'pass' });
  });
});

describe('what the router says of itself', () => {
  it('is of all queues: one that the relay refuses is said once, and not forgotten for another that it serves', async () => {
    const world = new World();
    const relay = world.relay();
    const alice = await world.machine('alice');
    const door = `${alice.key}.${alice.door}`;
    relay.onRegister = (queue) => (queue === door ? relay.fail(429, 'queue_limit') : undefined);
    alice.start();
    await world.pass(300_000);
    const why = relay.fail(429, 'queue_limit').message;
    expect(alice.logged).toEqual([{ event: 'relay', fields: { relay: relay.origin, why } }]);
    expect(stateOf(alice).relays).toMatchObject([{ failure: why }]);
    relay.onRegister = () => undefined;
    await world.pass(120_000);
    expect(stateOf(alice).relays).toMatchObject([{ failure: undefined }]);
    expect(alice.logged).toHaveLength(2);
  });

  it('is what the list of peers is now, and the log has a line when it breaks and one when it is mended', async () => {
    const { world, alice } = await runningPair();
    const why = 'peers.json: line 3: the text is no JSON here; mend it';
    alice.policyFault = new Refusal('store_unreadable', why);
    expect(stateOf(alice).why).toBe(why);
    await world.pass(300_000);
    alice.policyFault = undefined;
    expect(stateOf(alice).why).toBeUndefined();
    await world.pass(300_000);
    expect(alice.logged).toEqual([
      { event: 'nothing can be taken in', fields: { why } },
      { event: 'mail is taken in again', fields: { after: why } },
    ]);
  });

  it('tells that its relay answers again as soon as it does, not when the next mail comes', async () => {
    const { world, relay, alice } = await runningPair();
    relay.breakDown();
    await world.pass(5_000);
    expect(stateOf(alice).relays[0]?.failure).toMatch(/cannot be reached/);
    relay.down = undefined;
    await world.pass(9_000);
    expect(stateOf(alice).relays[0]?.failure).toBeUndefined();
  });
});

const stateOf = ({ running }: Machine): LinkState => (running as NonNullable<typeof running>).state();

/** Its row of the relays, from what the router says. */
function doctorOf(machine: Machine) {
  const { relays: told } = stateOf(machine);
  const link = {
    relays: told.map(({ origin, since, failure }) => ({ origin, since, ...(failure && { failure }) })),
  };
  return relays({
    account: {
      identity: { state: 'found', value: { key: machine.key } },
      peers: { state: 'found', value: 1 },
      relays: { state: 'found', value: told.map(({ origin }) => origin) },
    },
    router: { path: '', bytes: 0, socket: 'private', running: { link } },
  });
}
