// What a queue holds is let in while the process dies at every write: the relay is told to drop only what is committed, so that after
// the next start there is one record of it, never none and never two.

import path from 'node:path';
import { expect, it } from 'vitest';
import { Gate } from '../../src/peers/admit.ts';
import { takeControl } from '../../src/peers/pairing/take.ts';
import type { Account } from '../../src/ports/account.ts';
import type { Via } from '../../src/protocol/gate.ts';
import { readPolicy } from '../../src/protocol/policy-text.ts';
import { openStore } from '../../src/store/open.ts';
import { FakeClock, seededRandom } from '../contract/clock.ts';
import { temporaryDirectory } from '../contract/desk.ts';
import { forged, message, stranger, strangersDevice } from '../peers/forge.ts';
import { type Machine, World } from '../peers/machines.ts';
import { copyStore, openStage, type Stage } from './stage.ts';

interface Item {
  body: Uint8Array;
  via: Via;
}

async function parties(): Promise<{ alice: Machine; bob: Machine; account: Account }> {
  const world = new World();
  const [alice, bob] = [await world.machine('alice'), await world.machine('bob')];
  const policy = readPolicy(JSON.stringify({ alice: { key: alice.key } }), () => true);
  return { alice, bob, account: { identity: () => bob.identity, policy: () => policy } };
}

const quiet = { info: () => {}, warn: () => {} };

function gateOver(stage: Stage, account: Account): Gate {
  const ground = {
    ...stage,
    account,
    relays: [],
    endOutbox: () => {},
    policyFile: { add: () => Promise.reject(new Error()), remove: () => Promise.reject(new Error()) },
  };
  return new Gate({
    ...stage,
    account,
    log: quiet,
    control: (record, via) => takeControl(ground as never, record, via),
  });
}

/** The process gets the item from the relay until the relay is told to drop it. @returns whether it was */
async function once(stage: Stage, account: Account, bob: Machine, { body, via }: Item): Promise<boolean> {
  const queueId = via === 'door' ? bob.door : bob.device;
  try {
    const { verdicts } = await gateOver(stage, account).admit([{ body, via, queueId }]);
    return verdicts[0] === 'settle';
  } catch {
    return false;
  }
}

async function emptyStage(): Promise<Stage> {
  const file = path.join(temporaryDirectory(), 'postbell.db');
  const store = await openStore({ path: file, clock: new FakeClock(), random: seededRandom(1) });
  store.close();
  return openStage(file);
}

const tables = [
  'message',
  'delivery',
  'event',
  'link_record',
  'receipt_out',
  'pair_request',
  'pairing_notice',
];

/** How much of it is in the store; the number of obsolete messages last. */
const kept = (stage: Stage): number[] => {
  const dump = new Map(JSON.parse(stage.dump()) as [string, { superseded_by?: string | null }[]][]);
  const superseded = dump.get('delivery')?.filter((row) => typeof row.superseded_by === 'string');
  return [...tables.map((table) => dump.get(table)?.length ?? 0), superseded?.length ?? 0];
};

/** The item at every point where the process may die, with what was in the store before. */
async function dying(make: (of: { alice: Machine; bob: Machine }) => { earlier?: Item; item: Item }) {
  const { account, ...of } = await parties();
  const { earlier, item } = make(of);
  const arranged = async () => {
    const stage = await emptyStage();
    if (earlier !== undefined) await once(stage, account, of.bob, earlier);
    stage.database.writePoints = 0;
    return stage;
  };
  const clean = await arranged();
  const before = kept(clean);
  expect(await once(clean, account, of.bob, item)).toBe(true);
  const after = kept(clean);
  const points = clean.database.writePoints;
  const seen = new Set<string>();
  for (let nth = 1; nth <= points; nth += 1) {
    const stage = await arranged();
    const directory = temporaryDirectory();
    let copy = '';
    stage.database.crashAt = nth;
    stage.database.onCrash = () => {
      copy = copyStore(stage.file, directory);
    };
    const dropped = await once(stage, account, of.bob, item);
    const left = openStage(copy, 12);
    const at = `write point ${nth} of ${points}`;
    // All or nothing; and the relay was told nothing.
    expect([before, after], at).toContainEqual(kept(left));
    expect(dropped, at).toBe(false);
    seen.add(JSON.stringify(kept(left)));
    // It is still on the relay, which gives it out again.
    expect(await once(left, account, of.bob, item), at).toBe(true);
    expect(kept(left), at).toEqual(after);
  }
  expect(seen).toEqual(new Set([JSON.stringify(before), JSON.stringify(after)]));
  return { before, after, points };
}

it('[INB-004, INB-007, MSG-070] a message is there once, with its receipt, or still on the relay', async () => {
  const task = { task_id: 't', status: 'update', from_session: 'a1' } as const;
  const { before, after, points } = await dying(({ alice, bob }) => ({
    earlier: { via: 'device', body: message(bob, alice, task) },
    item: { via: 'device', body: message(bob, alice, { ...task, payload: '"newer"' }) },
  }));
  expect(points).toBeGreaterThan(6);
  // Message, delivery, event, record and receipt; and what it made obsolete, in the same transaction.
  expect(before).toEqual([1, 1, 1, 1, 1, 0, 0, 0]);
  expect(after).toEqual([2, 2, 2, 2, 2, 0, 0, 1]);
});

it('[INB-004] a request to pair is there once, with its notice, or still on the relay', async () => {
  const route = { from_device: strangersDevice, from_relays: ['https://relay.example'], suites: [1] };
  const { after } = await dying(({ bob }) => ({
    item: {
      via: 'door',
      body: forged(
        bob,
        stranger,
        { type: 'pair_request', fields: { ...route, name: 'somebody' } },
        { queueId: bob.door },
      ),
    },
  }));
  expect(after).toEqual([0, 0, 0, 0, 0, 1, 1, 0]);
});
