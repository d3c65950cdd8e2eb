// The trust gate, step by step: the first check that fails decides, and what is counted, told and kept of it.

import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Signer } from '../../src/crypto/ed25519.ts';
import { receive } from '../../src/mailbox/receive.ts';
import { ReplayMemory } from '../../src/peers/replay.ts';
import { gateSteps } from '../../src/protocol/gate.ts';
import { difference, ok } from '../contract/desk.ts';
import { root } from '../process/postbell.ts';
import {
  flipped,
  forged,
  freshId,
  message,
  openGate,
  type Porch,
  stranger,
  strangersDevice,
  toldBy,
} from './forge.ts';
import { cli, type Machine, World } from './machines.ts';

let world: World;
let alice: Machine;
let bob: Machine;
let porch: Porch;
beforeEach(async () => {
  world = new World();
  [alice, bob] = [await world.machine('alice'), await world.machine('bob')];
  await world.befriend(alice, bob);
  porch = openGate(bob);
});

const read = () => ok(receive(bob, { project: 'shop', recipient: 'bob' }, cli)).messages;

type Step = Exclude<(typeof gateSteps)[number], 'receipt'>;
const steps = gateSteps.filter((step): step is Step => step !== 'receipt');

/** An item that fails at each of these steps, were it looked at there. */
function failing(at: readonly Step[], known: string): Uint8Array {
  const has = (step: Step): boolean => at.includes(step);
  return message(
    bob,
    has('authorised') ? stranger : alice,
    {},
    {
      ...(has('replay') && { id: known }),
      ...(has('addressee') && { to: stranger.key }),
      ...(has('fresh') && { timeMs: world.clock.nowMs() + 60_001 }),
      // A flag that this format does not have.
      ...(has('fields') && { body: flipped(12) }),
      ...(has('signature') && { record: flipped(-1) }),
      ...(has('item') && { queueId: 'f'.repeat(32) }),
    },
  );
}

describe('the order of the trust gate', () => {
  const clashes = steps.flatMap((first, nth) => [
    [first],
    ...steps.slice(nth + 1).map((second): Step[] => [first, second]),
    steps.slice(nth),
  ]);

  it.each(clashes)('[PEER-019] %s decides before %s', async (...at) => {
    const known = freshId();
    await porch.admit(message(bob, alice, {}, { id: known }));
    const before = [bob.counts(), toldBy(bob)] as const;
    const { verdicts, stored } = await porch.admit(failing(at, known));
    expect([verdicts, stored]).toEqual([['settle'], []]);
    expect(porch.counts()).toEqual({ [at[0] as string]: 1 });
    const { gate_refusal, receipt_out, ...others } = difference(before[0], bob.counts());
    expect([gate_refusal, others]).toEqual([1, {}]);
    // A peer is told of what it can mend; of the message that is known already, that it is stored.
    const told = toldBy(bob).slice(before[1].length);
    const expected =
      at[0] === 'fields' ? ['reserved'] : at[0] === 'fresh' && !at.includes('replay') ? ['stale'] : [];
    expect(told.map(({ fact, detail }) => [fact, detail])).toEqual(expected.map((why) => ['refused', why]));
    expect(receipt_out ?? 0).toBe(expected.length);
  });

  it('[PEER-019] step 7 stores and wakes nobody', async () => {
    const { verdicts, stored } = await porch.admit(message(bob, alice, { hops: 32 }));
    expect([verdicts, stored.length, porch.counts()]).toEqual([['settle'], 1, {}]);
    expect(bob.store.read((tx) => tx.messages.byId(stored[0]?.message_id as string))).toMatchObject({
      waiting: true,
      attention: false,
    });
  });

  it('[PEER-019] is one piece of code, which one loop hands every item of every queue', () => {
    const calling = (word: RegExp) =>
      readdirSync(path.join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter(
        (file) => file.endsWith('.ts') && word.test(readFileSync(path.join(root, 'src', file), 'utf8')),
      );
    expect(calling(/\bnew Gate\(/)).toEqual(['router/link/link.ts']);
    expect(calling(/(?<!function )\binspect\(/)).toEqual(['peers/admit.ts']);
    expect(calling(/(?<!function )\btakeMessage\(/)).toEqual(['peers/admit.ts']);
    expect(calling(/(?<!function )\bopenItem\(/)).toEqual(['peers/inspect.ts']);
  });

  it.each([
    ['device', flipped(12)],
    ['device', (body: Uint8Array) => body.subarray(0, body.length - 3)],
    ['door', flipped(12)],
    ['door', (body: Uint8Array) => Uint8Array.from([...body, 1, 2, 3])],
  ] as const)('[PEER-020] looks at no field of a stranger: %s', async (via, body) => {
    const queueId = via === 'door' ? bob.door : bob.device;
    await porch.admitVia(via, message(bob, stranger, {}, { body, queueId }));
    expect([porch.counts(), toldBy(bob)]).toEqual([{ authorised: 1 }, []]);
    // The same bytes of a peer get as far as their fields.
    await porch.admit(message(bob, alice, {}, { body }));
    expect(porch.counts()).toEqual({ authorised: 1, fields: 1 });
  });

  it('[PEER-021] a sender is who signed, whatever it calls itself; the own key is self', async () => {
    const carol = await world.machine('carol');
    await world.befriend(bob, carol);
    await porch.admit(message(bob, carol, { sender: 'alice', from_session: 'alices-session' }));
    await porch.admit(message(bob, bob.identity, { sender: 'alice' }));
    expect(read().map(({ sender, origin }) => [sender, origin?.peer, origin?.sender_key])).toEqual([
      ['alice', 'carol', carol.key],
      ['alice', 'self', bob.key],
    ]);
  });
});

describe('fresh', () => {
  it.each([
    [60_000, 'taken'],
    [60_001, 'refused'],
    [-86_400_000, 'taken'],
    [-86_400_001, 'refused'],
  ] as const)('[PEER-022] %d ms from now is %s', async (offMs, expected) => {
    const id = freshId();
    await porch.admit(message(bob, alice, {}, { id, timeMs: world.clock.nowMs() + offMs }));
    expect(read()).toHaveLength(expected === 'taken' ? 1 : 0);
    expect(porch.counts()).toEqual(expected === 'taken' ? {} : { fresh: 1 });
    expect(toldBy(bob)).toMatchObject([
      {
        peer_key: alice.key,
        device: alice.device,
        wire_id: id,
        ...(expected === 'taken' ? { fact: 'stored' } : { fact: 'refused', detail: 'stale' }),
      },
    ]);
  });
});

const query = (from: Machine, id: string) =>
  forged(
    bob,
    from.identity,
    { type: 'query', fields: { from_device: from.device, ids: [freshId()] } },
    { id },
  );

const asking = (signer: Signer, id: string) =>
  forged(
    bob,
    signer,
    {
      type: 'pair_request',
      fields: {
        name: 'somebody',
        from_device: strangersDevice,
        from_relays: ['https://relay.example'],
        suites: [1],
      },
    },
    { id, queueId: bob.door },
  );

describe('replay', () => {
  it('[PEER-023] an id that a stranger used first is as good as new for a peer, and the other way', async () => {
    for (const make of [query, (from: Machine, id: string) => message(bob, from, {}, { id })]) {
      const id = freshId();
      const before = porch.counts();
      await porch.admitVia('door', asking(stranger, id));
      await porch.admit(message(bob, stranger, {}, { id }));
      expect(await porch.admit(make(alice, id))).toMatchObject({ verdicts: ['settle'] });
      const { authorised, ...others } = porch.counts();
      expect([authorised, others]).toEqual([(before.authorised ?? 0) + 1, {}]);
    }
    expect([porch.controls.length, read().length]).toEqual([2, 1]);
    const id = freshId();
    await porch.admit(query(alice, id));
    await porch.admitVia('door', asking(stranger, id));
    expect([porch.controls.length, porch.counts().replay]).toEqual([3, undefined]);
  });

  it('[PEER-023] is asked last before the fields: what is refused before burns no id', async () => {
    const id = freshId();
    const [early, broken] = [{ timeMs: world.clock.nowMs() + 60_001 }, { body: flipped(12) }];
    const asked = (forging: object) =>
      forged(
        bob,
        alice.identity,
        { type: 'query', fields: { from_device: alice.device, ids: [id] } },
        { id, ...forging },
      );
    await porch.admit(asked(early), asked(broken), asked({ record: flipped(-1) }));
    expect(porch.counts()).toEqual({ fresh: 1, fields: 1, signature: 1 });
    await porch.admit(asked({}));
    expect(porch.counts().replay).toBeUndefined();
    await porch.admit(asked({}));
    expect(porch.counts().replay).toBe(1);
  });

  it('[PEER-024] of a message is known by the store: after a restart, and when its body is gone', async () => {
    const item = message(bob, alice);
    await porch.admit(item);
    const [got] = read();
    const restarted = { ...bob, store: await bob.secondStore() };
    const again = openGate(restarted);
    await again.admit(item, item);
    expect(again.counts()).toEqual({ replay: 2 });
    await bob.store.write((tx) => tx.linkRecords.prune(alice.key, 'unseen', 0, ''));
    expect([bob.counts().message, read()]).toEqual([1, [got]]);
    // Its tombstone is as good.
    const acknowledged = { kind: 'ack', value: 'acknowledged', idempotency_key: 'k' } as const;
    await bob.store.write((tx) => {
      for (const kind of ['intake', 'ack'] as const)
        tx.receipts.insert(
          {
            value: acknowledged.value,
            idempotency_key: 'k',
            actor: 'bob',
            receipt_id: `rcp_${kind}`,
            receipt_kind: kind,
            delivery_id: got?.delivery_id as string,
            recorded_at: new Date(world.clock.nowMs()).toISOString(),
          },
          `evt_${kind}`,
        );
    });
    const nowMs = world.clock.nowMs();
    await bob.store.write((tx) =>
      tx.linkRecords.prune(alice.key, 'unseen', nowMs + 1, new Date(nowMs).toISOString()),
    );
    expect(bob.counts().link_record).toBe(0);
    await openGate(restarted).admit(item);
    expect([bob.counts().message, again.counts()]).toEqual([1, { replay: 3 }]);
  });

  it('[PEER-024] of other records is known to the process: 4,096 ids a peer, and as many of all strangers', async () => {
    const id = freshId();
    await porch.admit(query(alice, id), query(alice, id));
    await porch.admit(query(alice, id));
    expect(porch.counts()).toEqual({ replay: 2 });
    const memory = new ReplayMemory();
    const key = (nth: number) => `key ${nth % 3}`;
    memory.add('other', 'first', true);
    for (let nth = 0; nth < 4_096; nth += 1) {
      memory.add('peer', `id ${nth}`, true);
      memory.add(key(nth), `id ${nth}`, false);
    }
    expect([memory.has('peer', 'id 0', true), memory.has(key(0), 'id 0', false)]).toEqual([true, true]);
    memory.add('peer', 'id 4096', true);
    memory.add('yet another', 'id 4096', false);
    expect([memory.has('peer', 'id 0', true), memory.has(key(0), 'id 0', false)]).toEqual([false, false]);
    expect([memory.has('peer', 'id 1', true), memory.has(key(1), 'id 1', false)]).toEqual([true, true]);
    expect([memory.has('other', 'first', true), memory.has('peer', 'id 5', false)]).toEqual([true, false]);
  });
});

describe('a stranger', () => {
  const device = strangersDevice;
  const route = { from_device: device, from_relays: ['https://relay.example'], suites: [1] };
  const said = [
    ['query', { from_device: device, ids: [freshId()] }],
    ['route', route],
    ['receipt', { from_device: device, facts: [] }],
    ['pair_accept', { ...route, name: 'somebody', request_id: freshId() }],
  ] as const;

  it('[PEER-031] leaves nothing but a count by whatever it says, in whatever queue', async () => {
    const before = bob.counts();
    let count = 0;
    for (const via of ['device', 'door'] as const) {
      const queueId = via === 'door' ? bob.door : bob.device;
      const items = said.map(([type, fields]) =>
        forged(
          bob,
          stranger,
          {
            type,
            fields:
              type === 'receipt'
                ? {
                    ...fields,
                    facts: [{ message_id: freshId(), fact: { kind: 'ack', detail: 'ack' }, time_ms: 1_000 }],
                  }
                : fields,
          } as never,
          { queueId },
        ),
      );
      items.push(message(bob, stranger, {}, { queueId }));
      const { verdicts, told } = await porch.admitVia(via, ...items);
      expect([new Set(verdicts), told]).toEqual([new Set(['settle']), false]);
      count += items.length;
    }
    // A request to pair comes through the door.
    await porch.admit(
      forged(bob, stranger, { type: 'pair_request', fields: { ...route, name: 'somebody' } } as never),
    );
    expect(porch.counts()).toEqual({ authorised: count + 1 });
    expect(difference(before, bob.counts())).toEqual({ gate_refusal: 1 });
    expect(porch.controls).toEqual([]);
  });

  it('[PEER-031] gets a request to pair through the door: its key, where it is reached, and a name', async () => {
    const before = bob.counts();
    await porch.admitVia('door', asking(stranger, freshId()));
    expect(porch.controls).toMatchObject([
      { type: 'pair_request', from: stranger.key, fields: { ...route, name: 'somebody' } },
    ]);
    expect(Object.keys(porch.controls[0]?.fields ?? {}).sort()).toEqual([
      'from_device',
      'from_relays',
      'name',
      'suites',
    ]);
    expect(difference(before, bob.counts())).toEqual({});
    // Free text has no place in it: not as a name, and not as a field beside it.
    const written = (bytes: readonly number[]) => (body: Uint8Array) => {
      const copy = Uint8Array.from(body);
      copy.set(bytes, Buffer.from(body).indexOf('somebody'));
      return copy;
    };
    const item = (body: (bytes: Uint8Array) => Uint8Array) =>
      forged(bob, stranger, { type: 'pair_request', fields: { ...route, name: 'somebody' } } as never, {
        body,
        queueId: bob.door,
      });
    const payload = (body: Uint8Array) => {
      const copy = Uint8Array.from([...body, 200, 0, 0, 0, 4, ...Buffer.from('text')]);
      copy[102] = (copy[102] as number) + 1;
      return copy;
    };
    await porch.admitVia(
      'door',
      item(written([0x61, 0x0a])),
      item(written([0xe2, 0x80, 0xae])),
      item(payload),
    );
    expect(porch.counts()).toEqual({ fields: 2 });
    expect([porch.controls.length, Object.keys(porch.controls[1]?.fields ?? {}).length]).toEqual([2, 4]);
    expect(JSON.stringify(porch.controls)).not.toContain('text');
    expect(difference(before, bob.counts())).toEqual({ gate_refusal: 1 });
  });

  it('whose answer was asked for is let through, and nobody else’s', async () => {
    const answer = () =>
      forged(bob, stranger, {
        type: 'pair_accept',
        fields: { ...route, name: 'somebody', request_id: freshId() },
      } as never);
    await porch.admit(answer());
    await bob.store.write((tx) =>
      tx.pairing.asked.put({
        peer_key: stranger.key,
        request_id: freshId(),
        name: 'somebody',
        asked_ms: world.clock.nowMs(),
      }),
    );
    await porch.admit(answer());
    expect([porch.controls.length, porch.counts()]).toEqual([1, { authorised: 1 }]);
  });
});
