// What one peer may leave in one inbox: so many records and so many bytes, counted with the newcomer; the rest stays on the relay.

import { beforeEach, describe, expect, it } from 'vitest';
import { listenerBell } from '../../src/hosts/claude-code/bell.ts';
import { acknowledge } from '../../src/mailbox/acknowledge.ts';
import { history } from '../../src/mailbox/history.ts';
import { receive } from '../../src/mailbox/receive.ts';
import { reconcile } from '../../src/mailbox/ring.ts';
import { type StatusAnswer, status } from '../../src/mailbox/status.ts';
import type { Message } from '../../src/protocol/message.ts';
import { attach, ok, post, posted, sessionCaller } from '../contract/desk.ts';
import { fault } from '../contract/rung.ts';
import { freshId, message, openGate, type Porch, stranger, toldBy } from './forge.ts';
import { type Machine, World } from './machines.ts';

const dayMs = 86_400_000;
const bytesMax = 33_554_432;
const session = sessionCaller('s1');
const bobs = JSON.stringify(['principal', 'shop', 'bob']);

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

interface Filling {
  owner?: string;
  /** Of each; 0 where only their number matters. */
  bytes?: number;
  sentMs?: number;
  taken?: readonly ('intake' | 'ack')[];
  over?: Partial<Message>;
}

/** So many records of Alice, as if they had come: one transaction through the ports that admission writes through. */
async function fill(
  count: number,
  { owner = bobs, bytes = 0, sentMs = world.clock.nowMs(), taken = [], over = {} }: Filling = {},
): Promise<string[]> {
  const created_at = new Date(sentMs).toISOString();
  const ids = Array.from({ length: count }, freshId);
  await bob.store.write((tx) => {
    for (const id of ids) {
      const delivery_id = `dlv_${id}`;
      tx.messages.insert({
        message: {
          message_id: `msg_${id}`,
          delivery_id,
          event_id: `evt_${id}`,
          created_at,
          project: 'shop',
          sender: 'alice',
          recipient: 'bob',
          target_kind: 'principal',
          content_type: 'text/plain',
          privacy: 'private',
          provenance: { transport: 'link', source_host: 'link', peer_key: alice.key },
          origin: { sender_key: alice.key, message_id: id, return_route: { device: alice.device } },
          ...over,
        } as Message,
        held: false,
        payload: '"x"',
        payload_sha256: '0',
        arrived_at: created_at,
      });
      tx.linkRecords.insert({ delivery_id, peer_key: alice.key, owner, bytes, sent_ms: sentMs });
      for (const receipt_kind of taken)
        tx.receipts.insert(
          {
            receipt_id: `rcp_${receipt_kind}_${id}`,
            receipt_kind,
            delivery_id,
            actor: 'bob',
            value: receipt_kind === 'ack' ? 'acknowledged' : 'ingested',
            idempotency_key: 'k',
            recorded_at: created_at,
          },
          `evt_${receipt_kind}_${id}`,
        );
    }
  });
  return ids;
}

const later = { verdicts: [{ defer_s: 30 }] };
const settled = { verdicts: ['settle'] };
const waiting = () => ok(receive(bob, { project: 'shop' }, session));
const records = () => bob.counts().link_record;

describe('records of one peer for one owner', () => {
  it('[INB-013, INB-019] are 4,096, the newcomer included; what waits makes no room', async () => {
    await fill(4_094);
    expect(await porch.admit(message(bob, alice))).toMatchObject(settled);
    expect(await porch.admit(message(bob, alice))).toMatchObject(settled);
    expect(records()).toBe(4_096);
    const before = bob.counts();
    expect(await porch.admit(message(bob, alice))).toMatchObject(later);
    await world.clock.advance(2 * dayMs);
    expect(await porch.admit(message(bob, alice))).toMatchObject(later);
    expect(bob.counts()).toEqual(before);
    expect(waiting().remaining + waiting().messages.length).toBe(4_096);
    expect(bob.rows('SELECT count(*) AS n FROM message WHERE tombstoned_at IS NOT NULL')).toEqual([{ n: 0 }]);
  });

  it('[INB-014] are 33,554,432 bytes of their compact JSON, the newcomer included', async () => {
    const payload = JSON.stringify(`h\u00e9llo \u{1f426} ${'x'.repeat(1_000)}`);
    await porch.admit(message(bob, alice, { payload }));
    const [got] = waiting().messages;
    const { receipt: _, untrusted: __, origin, ...shown } = got as NonNullable<typeof got>;
    const { peer: ___, ...asStored } = origin as NonNullable<typeof origin>;
    const bytes = Buffer.byteLength(JSON.stringify({ ...shown, origin: asStored }));
    expect(bob.rows('SELECT bytes, owner FROM link_record')).toEqual([{ bytes, owner: bobs }]);
    // Two are of the same size, whatever their ids: this leaves room for exactly one more, or for all but a byte of it.
    await fill(1, { bytes: bytesMax - 2 * bytes + 1 });
    expect(await porch.admit(message(bob, alice, { payload }))).toMatchObject(later);
    await porch.admit(message(bob, alice, { payload: payload.replace('xx', 'x') }));
    expect(bob.rows('SELECT sum(bytes) AS bytes FROM link_record WHERE owner = ?', bobs)).toEqual([
      { bytes: bytesMax },
    ]);
    expect(await porch.admit(message(bob, alice, { payload: '""' }))).toMatchObject(later);
  });

  it('[INB-015] waiting, acknowledged and superseded ones count; taken in without an ack, until they are a day old', async () => {
    const sentMs = world.clock.nowMs();
    const update = { status: 'update', task_id: 't', from_session: 'a1' } as const;
    await fill(4_092, { taken: ['intake', 'ack'], sentMs });
    await fill(1, { taken: ['ack'], sentMs });
    await fill(1, { taken: ['intake'], sentMs });
    await porch.admit(message(bob, alice, update));
    await porch.admit(message(bob, alice, { ...update, payload: '"newer"' }));
    expect(bob.rows('SELECT count(*) AS n FROM delivery WHERE superseded_by IS NOT NULL')).toEqual([
      { n: 1 },
    ]);
    expect(await porch.admit(message(bob, alice))).toMatchObject(later);
    const counted = (beforeMs: number) =>
      bob.store.read((tx) =>
        tx.linkRecords.counted(alice.key, bobs, beforeMs, new Date(sentMs).toISOString()),
      ).count;
    expect([counted(sentMs), counted(sentMs + 1)]).toEqual([4_096, 4_095]);
    // What is of this machine counts elsewhere.
    await posted(bob);
    expect(counted(sentMs)).toBe(4_096);
    // At a day old it still counts, and so do all others; after that it keeps its body, and counts no more.
    await world.clock.advance(dayMs);
    expect(await porch.admit(message(bob, alice))).toMatchObject(later);
    await world.clock.advance(1);
    expect(await porch.admit(message(bob, alice))).toMatchObject(settled);
    const kept = bob.rows(
      'SELECT m.payload FROM message m JOIN delivery d USING (message_id) JOIN link_record l USING (delivery_id) ORDER BY m.seq',
    );
    expect(kept.map(({ payload }) => payload)).toEqual(['"x"', '"x"', '"newer"', '"hello bob"']);
  });

  it('expired ones that nobody took in count until they are a day old, and keep their body', async () => {
    const expires_at = new Date(world.clock.nowMs() + 1_000).toISOString();
    await fill(4_096, { over: { expires_at } });
    await world.clock.advance(dayMs);
    expect(await porch.admit(message(bob, alice))).toMatchObject(later);
    await world.clock.advance(1);
    expect(await porch.admit(message(bob, alice))).toMatchObject(settled);
    expect(records()).toBe(4_097);
    expect(bob.rows('SELECT count(*) AS n FROM message WHERE tombstoned_at IS NOT NULL')).toEqual([{ n: 0 }]);
  });

  it('[INB-016] at the cap are announced and acknowledged all the same', async () => {
    const ids = await fill(4_096, { bytes: bytesMax / 4_096 });
    expect(await porch.admit(message(bob, alice))).toMatchObject(later);
    await world.clock.advance(1_000);
    await reconcile(bob, { caller: session, project: 'shop' }, listenerBell(bob), fault);
    expect(bob.rows('SELECT state FROM reservation')).toEqual([{ state: 'inbox_queued' }]);
    expect([bob.counts().listener_row, bob.counts().reservation_cover]).toEqual([1, 4_096]);
    let acknowledged = 0;
    for (let at = 0; at < ids.length; at += 100) {
      const messages = ids.slice(at, at + 100).map((msg_id) => ({ sender: alice.key, msg_id }));
      acknowledged += ok(await acknowledge(bob, { project: 'shop', messages }, session)).acknowledged;
    }
    expect([acknowledged, waiting().messages, records()]).toEqual([4_096, [], 4_096]);
  });

  it('[INB-017] are bounded for each owner and for each peer alone', async () => {
    const carol = await world.machine('carol');
    await world.befriend(bob, carol);
    await attach(bob, 's2', { principal_id: 'robert' });
    await fill(4_096);
    const { verdicts } = await porch.admit(
      message(bob, alice),
      message(bob, alice, { recipient: 'robert' }),
      message(bob, carol),
      message(bob, alice, { recipient: 's1', target_kind: 'session' }),
      message(bob, alice, { recipient: 'bob', project: 'another project' }),
    );
    expect(verdicts).toEqual([{ defer_s: 30 }, 'settle', 'settle', 'settle', 'settle']);
  });

  it('[INB-018] names that were never seen share one bound for each peer', async () => {
    await fill(4_094, { owner: 'unseen', over: { recipient: 'nobody' } });
    const to = (recipient: string, target_kind: 'session' | 'principal' = 'session') =>
      message(bob, alice, { recipient, target_kind });
    const { verdicts } = await porch.admit(
      to('new-1'),
      to('new-2', 'principal'),
      to('new-3'),
      to('bob', 'principal'),
    );
    expect(verdicts).toEqual(['settle', 'settle', { defer_s: 30 }, 'settle']);
    const carol = await world.machine('carol');
    await world.befriend(bob, carol);
    expect(await porch.admit(message(bob, carol, { recipient: 'new-3' }))).toMatchObject(settled);
    // Who is seen at last has a bound of its own, and what came for it before counts there.
    await attach(bob, 'new-3', { principal_id: 'nobody', project: 'shop' });
    expect(await porch.admit(to('new-3'), to('new-4'))).toMatchObject({
      verdicts: ['settle', { defer_s: 30 }],
    });
    expect(await porch.admit(to('nobody', 'principal'))).toMatchObject(settled);
    expect(await porch.admit(to('new-4'))).toMatchObject(settled);
    expect(bob.rows("SELECT count(*) AS n FROM link_record WHERE owner LIKE '%nobody%'")).toEqual([
      { n: 4_095 },
    ]);
  });

  it('[INB-018] 4,097 messages to as many new session ids: the last stays on the relay', async () => {
    const items = Array.from({ length: 4_097 }, (_, nth) =>
      message(bob, alice, { recipient: `invented ${nth}`, target_kind: 'session' }),
    );
    const verdicts: unknown[] = [];
    for (let at = 0; at < items.length; at += 256)
      verdicts.push(...(await porch.admit(...items.slice(at, at + 256))).verdicts);
    expect(verdicts.map((one) => one === 'settle')).toEqual(items.map((_, nth) => nth < 4_096));
  }, 60_000);
});

describe('pruning', () => {
  it('[INB-020, MSG-157] takes what was acknowledged and is older than a day, when the next one comes and not before', async () => {
    await fill(4_096, { taken: ['intake', 'ack'] });
    expect(await porch.admit(message(bob, alice))).toMatchObject(later);
    await world.clock.advance(dayMs);
    expect(await porch.admit(message(bob, alice))).toMatchObject(later);
    expect(records()).toBe(4_096);
    await world.clock.advance(1);
    const carol = await world.machine('carol');
    await world.befriend(bob, carol);
    await porch.admit(message(bob, carol));
    expect(records()).toBe(4_097);
    expect(await porch.admit(message(bob, alice))).toMatchObject(settled);
    const counted = bob.store.read((tx) => tx.linkRecords.counted(alice.key, bobs, 0, ''));
    expect([records(), counted.count]).toEqual([2, 1]);
    expect(bob.rows('SELECT count(*) AS n FROM message WHERE tombstoned_at IS NOT NULL')).toEqual([
      { n: 4_096 },
    ]);
  });

  it('[MSG-157] never takes what waits, nor what was taken in without an ack, and knows all that it took', async () => {
    const sentMs = world.clock.nowMs();
    const [waits] = await fill(1, { sentMs });
    const [acked] = await fill(1, { sentMs, taken: ['ack'] });
    const [taken] = await fill(1, { sentMs, taken: ['intake'] });
    const [done] = await fill(1, { sentMs, taken: ['intake', 'ack'] });
    await fill(4_092, { sentMs, taken: ['intake', 'ack'] });
    expect(await porch.admit(message(bob, alice))).toMatchObject(later);
    await world.clock.advance(dayMs + 1);
    expect(await porch.admit(message(bob, alice))).toMatchObject(settled);
    const pruned = (id: string | undefined) =>
      bob.store.read((tx) => tx.messages.byOrigin(alice.key, id as string)?.tombstoned_at !== undefined);
    expect([waits, acked, taken, done].map(pruned)).toEqual([false, false, false, true]);
    expect(
      waiting()
        .messages.map(({ origin }) => origin?.message_id)
        .slice(0, 2),
    ).toEqual([waits, acked]);
    const before = bob.counts().message;
    await porch.admit(message(bob, alice, {}, { id: done as string }));
    expect([bob.counts().message, porch.counts()]).toEqual([before, { replay: 1 }]);
  });

  it('[INB-021] leaves receipt key, receipts and times: a replay adds nothing, and status says that it is pruned', async () => {
    const id = freshId();
    const item = () => message(bob, alice, { payload: '"SENTINEL"' }, { id });
    await porch.admit(item());
    const key = { sender: alice.key, msg_id: id };
    ok(await acknowledge(bob, { project: 'shop', messages: [key] }, session));
    const asked = () => ok(status(bob, key, session)) as StatusAnswer;
    const before = asked();
    expect(before).toMatchObject({ pruned: false, payload: 'SENTINEL' });
    const used = bob.store.read((tx) => tx.messages.payloadBytes());
    await world.clock.advance(dayMs + 1);
    await porch.admit(message(bob, alice, { payload: '"y"' }));
    const after = asked();
    expect(after).toMatchObject({
      ...before,
      pruned: true,
      payload: { tombstone: true, original_bytes: 10 },
    });
    expect(after.receipts.map(({ receipt_kind, recorded_at }) => [receipt_kind, recorded_at])).toEqual(
      before.receipts.map(({ receipt_kind, recorded_at }) => [receipt_kind, recorded_at]),
    );
    const told = ok(await history(bob, { project: 'shop', peer: 'alice' }, session)).messages;
    expect(JSON.stringify([told, bob.rows('SELECT * FROM message')])).not.toContain('SENTINEL');
    expect(bob.rows('SELECT count(*) AS n FROM link_record')).toEqual([{ n: 1 }]);
    const tombstone = JSON.stringify(after.payload).length;
    expect(bob.store.read((tx) => tx.messages.payloadBytes())).toBe(used - 10 + tombstone + 3);
    const counts = bob.counts();
    await porch.admit(item());
    expect([bob.counts().message, bob.counts().receipt, bob.counts().event]).toEqual([
      counts.message,
      counts.receipt,
      counts.event,
    ]);
    expect(asked()).toEqual(after);
  });
});

describe('the storage quota', () => {
  it('[MSG-148] or the bound of an inbox keeps a message on the relay, and nothing is evicted for it', async () => {
    const [relay] = world.relays;
    alice.start();
    const limited = Object.assign(bob, { quota: 0 });
    limited.start();
    await world.pass(2_000);
    ok(await post(alice, { peer: 'bob', payload: 'one' }));
    await world.pass(60_000);
    expect([relay?.depth(bob.queue), bob.counts().message, bob.counts().link_record]).toEqual([1, 0, 0]);
    await bob.stop();
    Object.assign(bob, { quota: 5 });
    bob.start();
    await world.pass(60_000);
    expect([relay?.depth(bob.queue), waiting().messages.map(({ payload }) => payload)]).toEqual([0, ['one']]);
    // The same by the bound.
    await bob.stop();
    Object.assign(bob, { quota: undefined });
    await fill(4_095);
    bob.start();
    ok(await post(alice, { peer: 'bob', payload: 'two' }));
    await world.pass(60_000);
    expect([relay?.depth(bob.queue), records()]).toEqual([1, 4_096]);
    expect(bob.rows('SELECT count(*) AS n FROM message WHERE tombstoned_at IS NOT NULL')).toEqual([{ n: 0 }]);
  });
});

describe('[PEER-079] a stored receipt', () => {
  const detail = async (over: object = {}) => {
    const id = freshId();
    await porch.admit(message(bob, alice, over, { id }));
    return toldBy(bob).find(({ wire_id }) => wire_id === id)?.detail;
  };

  it('says live, away, deaf or unknown, as the recipient is at that moment', async () => {
    expect(await detail()).toBe('live');
    await attach(bob, 's2', {
      principal_id: 'robert',
      bell: 'none',
      adapter_kind: 'poll',
      host_kind: 'other',
    });
    expect(await detail({ recipient: 'robert' })).toBe('deaf');
    expect(await detail({ recipient: 's1', target_kind: 'session' })).toBe('live');
    expect(await detail({ recipient: 'nobody' })).toBe('unknown');
    await world.clock.advance(300_000);
    expect(await detail()).toBe('away');
  });

  it.each([
    [3_275, 0, 'live'],
    [3_276, 0, 'nearly_full'],
    [1, 26_800_000, 'live'],
    [1, 26_843_546, 'nearly_full'],
  ])('after %d of %d bytes each says %s', async (count, bytes, expected) => {
    await fill(count, { bytes });
    expect(await detail()).toBe(expected);
  });

  it('brings that to the sender', async () => {
    alice.start();
    bob.start();
    await world.pass(2_000);
    await fill(3_276);
    await fill(1, { owner: 'other' });
    for (const recipient of ['bob', 'nobody']) ok(await post(alice, { peer: 'bob', recipient }));
    await world.pass(3_000);
    expect(alice.rows("SELECT value FROM receipt WHERE receipt_kind = 'stored' ORDER BY value")).toEqual([
      { value: 'nearly_full' },
      { value: 'unknown' },
    ]);
  });
});

it('nobody else’s mail fills anything', async () => {
  await porch.admit(message(bob, stranger));
  expect(records()).toBe(0);
});
