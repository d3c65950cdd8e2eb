// Mail of other machines under each bell: one gate, one way into the store, and a notice, whatever rings.

import BetterSqlite3 from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { acknowledge } from '../../src/mailbox/acknowledge.ts';
import { receive } from '../../src/mailbox/receive.ts';
import { dispatch } from '../../src/sessions/dispatch.ts';
import { acp, channel, listener, type MakeAdapter, queue } from '../conformance/adapters.ts';
import { managed } from '../conformance/fixture-managed.ts';
import { type Belled, openBelled, ringing, toSession } from '../conformance/scene.ts';
import { atEnd, difference, ok, posted } from '../contract/desk.ts';
import { flipped, freshId, message, openGate, type Porch, stranger, toldBy } from './forge.ts';
import { type Machine, World } from './machines.ts';

const bells: [string, MakeAdapter][] = [
  ['the listener', listener],
  ['the channel', channel],
  ['the queue of Codex', queue],
  ['a turn of an app-server', managed],
  ['a prompt at a time', acp],
];
const makers = bells.map(([, make]) => make);

interface Scene {
  world: World;
  alice: Machine;
  bob: Machine;
  s: Belled;
  porch: Porch;
  /** As the router does: what was stored is rung for. */
  comes(...items: Uint8Array[]): Promise<unknown[]>;
}

async function scene(make: MakeAdapter): Promise<Scene> {
  const world = new World();
  const [alice, bob] = [await world.machine('alice'), await world.machine('bob')];
  await world.befriend(alice, bob);
  const s = await openBelled(make, bob);
  await s.attach();
  s.startNotifier();
  await world.clock.advance(1_000);
  const porch = openGate(bob);
  const comes: Scene['comes'] = async (...items) => {
    const { verdicts, stored } = await porch.admit(...items);
    const told = stored.map(({ project, delivery_id }) => dispatch(bob.board, project, delivery_id));
    await world.clock.advance(2_000);
    await Promise.all(told);
    return verdicts;
  };
  return { world, alice, bob, s, porch, comes };
}

const acknowledgeAll = async ({ bob }: Scene): Promise<void> => {
  const { messages } = ok(receive(bob, { project: 'shop' }, ringing.caller));
  const keys = messages.map(({ receipt }) => receipt);
  ok(await acknowledge(bob, { project: 'shop', messages: keys }, ringing.caller));
};

/** One that fails at each of the checks that come before the fields. */
const bad = ({ bob, alice, world }: Scene, known: string): Uint8Array[] => [
  message(bob, alice, {}, { record: flipped(-1) }),
  message(bob, alice, {}, { to: alice.key }),
  message(bob, stranger),
  message(bob, alice, {}, { timeMs: world.clock.nowMs() - 86_400_001 }),
  message(bob, alice, { payload: '"again"' }, { id: known }),
];

describe.each(bells)('%s', (_name, make) => {
  it('[INB-001] of what fails a check there is no record, no notice and no call of the host; of what passes there is', async () => {
    const one = await scene(make);
    const { bob, alice, s, comes } = one;
    const known = freshId();
    await comes(message(bob, alice, {}, { id: known }));
    await acknowledgeAll(one);
    const before = [s.rings().length, s.host.given.length] as const;
    for (const item of bad(one, known)) {
      const counts = bob.counts();
      await comes(item);
      const { gate_refusal: _, receipt_out: __, ...others } = difference(counts, bob.counts());
      expect(others).toEqual({});
    }
    expect([s.rings().length, s.host.given.length]).toEqual(before);
    await comes(message(bob, alice, { payload: '"good"' }));
    expect(s.waiting()).toHaveLength(1);
    expect(s.rings().length - before[0]).toBe(1);
    expect(s.rings().at(-1)?.text).toMatch(/^\[Postbell inbox notice\]\n1 message waits/);
  });

  it('[INB-027, SES-098] mail of another machine is announced by a notice, to session and principal, and never whole', async () => {
    const { bob, alice, s, comes } = await scene(make);
    const payload = '"SENTINEL"';
    const sender = 'CLAIMED';
    await comes(message(bob, alice, { payload, sender, recipient: 's1', target_kind: 'session' }));
    await comes(message(bob, alice, { payload, sender }));
    expect(bob.handed.length).toBeGreaterThan(0);
    expect(bob.handed.map(({ content }) => content)).toEqual(bob.handed.map(() => 'notice'));
    expect(JSON.stringify(bob.handed)).not.toContain('SENTINEL');
    expect(JSON.stringify([s.rings(), s.host.given, s.host.seen])).not.toMatch(/SENTINEL|CLAIMED/);
    expect(bob.rows('SELECT DISTINCT content FROM host_accept')).toEqual([{ content: 'notice' }]);
    expect(s.waiting()).toHaveLength(2);
  });

  it('[HOST-012] gets a whole message where it is a channel and the message is of this machine and fits; else a notice', async () => {
    const { world, bob, alice, s, comes } = await scene(make);
    const handed = async (send: () => Promise<unknown>) => {
      const before = bob.handed.length;
      const sending = send();
      await world.clock.advance(2_000);
      await sending;
      expect(bob.handed.length - before).toBe(1);
      // The next one is not held back by what is told of this one.
      await acknowledgeAll({ bob } as Scene);
      await world.clock.advance(31_000);
      return bob.handed.at(-1);
    };
    const whole = make === channel ? 'full' : 'notice';
    const small = await handed(() => posted(bob, { ...toSession, payload: 'SMALL' }));
    expect(small?.content).toBe(whole);
    expect(JSON.stringify(small).includes('SMALL')).toBe(make === channel);
    if (make === channel) {
      expect(s.rings().at(-1)?.text).toContain('SMALL');
      expect(s.rings().at(-1)?.text).not.toContain('[Postbell inbox notice]');
    }
    expect((await handed(() => posted(bob, { payload: 'PRINCIPAL' })))?.content).toBe(whole);
    const large = await handed(() => posted(bob, { payload: `LARGE${'x'.repeat(17_000)}` }));
    expect(large?.content).toBe('notice');
    for (const to of [{}, { recipient: 's1', target_kind: 'session' as const }])
      expect((await handed(() => comes(message(bob, alice, { payload: '"REMOTE"', ...to }))))?.content).toBe(
        'notice',
      );
    expect(JSON.stringify([bob.handed, s.rings()])).not.toMatch(/LARGE|REMOTE/);
  });

  it('[HOST-036, INB-061] C16: where a failure cannot be saved, mail is stored, the relay drained, and rung for again', async () => {
    const one = await scene(make);
    const { world, bob, alice, s, comes } = one;
    const writer = new BetterSqlite3(bob.path);
    atEnd(() => writer.close());
    writer.exec(
      "CREATE TRIGGER unwritable BEFORE INSERT ON failed_delivery BEGIN SELECT RAISE(ABORT, 'no room'); END",
    );
    s.refuse();
    expect(await comes(message(bob, alice, { payload: '"first"' }))).toEqual(['settle']);
    expect(await comes(message(bob, alice, { payload: '"second"' }))).toEqual(['settle']);
    expect([s.waiting().length, bob.counts().failed_delivery]).toEqual([2, 0]);
    s.mend();
    const before = s.rings().length;
    await world.clock.advance(301_000);
    expect(s.rings().length).toBeGreaterThan(before);
    expect(await comes(message(bob, alice, { payload: '"third"' }))).toEqual(['settle']);
  });
});

describe('under every bell', () => {
  it('[INB-002] the gate says the same of five bad items and a good one', async () => {
    const said: unknown[] = [];
    for (const make of makers) {
      const one = await scene(make);
      const known = freshId();
      await one.comes(message(one.bob, one.alice, {}, { id: known }));
      const verdicts = await one.comes(...bad(one, known), message(one.bob, one.alice));
      const told = toldBy(one.bob).map(({ fact, detail }) => [fact, detail]);
      said.push([verdicts, one.porch.counts(), told, one.bob.counts().message]);
    }
    const expected = [
      Array(6).fill('settle'),
      { signature: 1, addressee: 1, authorised: 1, fresh: 1, replay: 1 },
      [
        ['stored', 'live'],
        ['refused', 'stale'],
        // Of the one that came again: who was there when it came first is not said twice.
        ['stored', 'unknown'],
        ['stored', 'live'],
      ],
      2,
    ];
    expect(said).toEqual(makers.map(() => expected));
  });

  it('[INB-005] the same mail, read, acknowledged and sent again, leaves the same rows', async () => {
    const left: unknown[] = [];
    for (const make of makers) {
      const one = await scene(make);
      const { bob, alice, comes } = one;
      const ids = ['1', '2', '3'].map((nth) => `00000000-0000-0000-0000-00000000000${nth}`) as [
        string,
        string,
        string,
      ];
      const task = { task_id: 't', status: 'update', from_session: 'a1' } as const;
      const root_id = ids[0];
      const items = [
        message(bob, alice, { root_id }, { id: ids[0] }),
        message(bob, alice, { ...task, root_id }, { id: ids[1] }),
        message(bob, alice, { ...task, root_id, payload: '"newer"' }, { id: ids[2] }),
      ];
      await comes(...items);
      await acknowledgeAll(one);
      await comes(...items);
      left.push(
        [
          'SELECT origin_id, peer_key, project, sender, payload, payload_sha256, status, task_id, hops, held, root_id, created_at FROM message ORDER BY seq',
          'SELECT recipient, target_kind, open, superseded_by IS NULL AS newest FROM delivery ORDER BY seq',
          "SELECT d.seq, receipt_kind, value, actor, caller_session FROM receipt r JOIN delivery d USING (delivery_id) WHERE receipt_kind IN ('intake', 'ack') ORDER BY d.seq, receipt_kind",
          'SELECT peer_key, owner, bytes, sent_ms FROM link_record ORDER BY rowid',
          'SELECT wire_id, fact, detail FROM receipt_out ORDER BY seq',
          'SELECT event_kind, recipient FROM event ORDER BY seq',
          'SELECT step, count FROM gate_refusal',
        ].map((sql) => bob.rows(sql)),
      );
      expect(ok(receive(bob, { project: 'shop' }, ringing.caller)).messages).toEqual([]);
    }
    expect(left).toEqual(left.map(() => left[0]));
    expect((left[0] as unknown[][])[0]).toHaveLength(3);
  });
});
