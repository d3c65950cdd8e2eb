// Single rules of mail to and from other machines.

import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, it } from 'vitest';
import { itemId } from '../../src/crypto/item-id.ts';
import { acknowledge } from '../../src/mailbox/acknowledge.ts';
import { receipts } from '../../src/mailbox/receipts.ts';
import { receive } from '../../src/mailbox/receive.ts';
import { sessionMeantBy } from '../../src/peers/session-prefix.ts';
import type { StoredMessage } from '../../src/ports/mail.ts';
import { limits } from '../../src/protocol/limits.ts';
import { bytesOfHex } from '../../src/protocol/wire/bytes.ts';
import { attach, ok, openScene, post, posted, refused } from '../contract/desk.ts';
import { cli, type Machine, noSuchFile, openPair, type World } from './machines.ts';
import type { ModelRelay } from './model-relay.ts';

const secondMs = 1_000;
const hourMs = 3_600_000;

let world: World;
let relay: ModelRelay;
let alice: Machine;
let bob: Machine;

beforeEach(async () => {
  ({ world, relay, alice, bob } = await openPair());
});

const send = async (over: Record<string, unknown> = {}) => ok(await post(alice, { peer: 'bob', ...over }));
const card = (session_id: string) => ({
  session_id,
  principal: 'bob',
  project: 'shop',
  host_kind: 'claude',
  directory: '',
  git: '',
  work_summary: '',
  bell: 'listener',
  generation: 1,
});
const listing = (...ids: string[]) =>
  alice.store.write((tx) =>
    tx.devices.card({ peer_key: bob.key, device: bob.device, card_ms: 1, sessions: ids.map(card) }),
  );

describe('content', () => {
  it('[MSG-021] is every field that describes the message, the peer too; how the call behaves is none', async () => {
    await attach(alice, 's1', { principal_id: 'carol' });
    const base = { idempotency_key: 'k', recipient: 'carol' };
    const first = await posted(alice, base);
    const vary: Record<string, unknown> = {
      target_kind: 'session',
      payload: 'other',
      privacy: 'team',
      correlation_id: 'c',
      reply_to: 'r',
      task_id: 't',
      status: 'result',
      expires_at: '2030-01-01T00:00:00.000Z',
      quiet: true,
      peer: 'bob',
      intended_session: 's1',
      recipient: 'dave',
    };
    for (const [field, value] of Object.entries(vary))
      expect([field, refused(await post(alice, { ...base, [field]: value })).code]).toEqual([
        field,
        'idempotency_conflict',
      ]);
    // Other scopes of the key: another message.
    for (const [field, value] of Object.entries({ project: 'other', sender: 'zoe' }))
      expect([
        field,
        ok(await post(alice, { ...base, [field]: value })).message_id === first.message_id,
      ]).toEqual([field, false]);
    expect(
      refused(await post(alice, { ...base, content_type: 'application/json', payload: 'hello bob' })).code,
    ).toBe('idempotency_conflict');
    const again = ok(await post(alice, { ...base, reply_wait_ms: 0 }));
    expect(again.message_id).toBe(first.message_id);
    const exact = { idempotency_key: 'e', target_kind: 'session', recipient: 's9' };
    const one = refused(await post(alice, exact));
    const behaves = refused(
      await post(alice, { ...exact, fallback_to_principal: true, expected_generation: 7 }),
    );
    expect(behaves.details?.message_id).toBe(one.details?.message_id);
  });
});

describe('the first check that fails', () => {
  it('[MSG-037] is the answer: fields, idempotency, peer, nameable session, loop guard, quota and outbox bound', async () => {
    const codeOf = async (over: Record<string, unknown>) => refused(await post(alice, over)).code;
    const at = { expires_at: new Date(world.clock.nowMs() + hourMs).toISOString() };
    const chain = await send();
    await alice.store.write((tx) => {
      const { message } = tx.messages.byId(chain.message_id) as StoredMessage;
      const ids = { message_id: 'deep', delivery_id: 'deep', event_id: 'deep' };
      tx.messages.insert({
        message: { ...message, ...ids, hops: limits.hopsMax },
        held: false,
        payload: '""',
        payload_sha256: '',
      });
    });
    const deep = { reply_to: 'deep' };
    // fields before idempotency
    await send({ idempotency_key: 'k' });
    expect(await codeOf({ peer: 'bob', idempotency_key: 'k', payload: 7 })).toBe('invalid_request');
    // idempotency before peer
    expect(await codeOf({ peer: 'nobody', idempotency_key: 'k', payload: 'other' })).toBe(
      'idempotency_conflict',
    );
    // peer before loop guard
    expect(await codeOf({ peer: 'nobody', ...deep })).toBe('unknown_peer');
    // nameable session before loop guard
    await attach(alice, 'acp-1', {
      adapter_kind: 'acp',
      bell: 'acp',
      host_kind: 'other',
      principal_id: 'eve',
    });
    expect(await codeOf({ recipient: 'eve', intended_session: 'acp-1', ...deep })).toBe(
      'session_not_nameable',
    );
    // loop guard before quota
    alice.quota = 0;
    expect(await codeOf({ peer: 'bob', ...deep })).toBe('loop_limit');
    // quota before outbox bound
    await alice.store.write((tx) => {
      for (let nth = 0; nth < 10_000; nth += 1) {
        const ids = { message_id: `f${nth}`, delivery_id: `f${nth}`, event_id: `f${nth}` };
        const { message } = tx.messages.byId(chain.message_id) as StoredMessage;
        tx.messages.insert({
          message: { ...message, ...ids },
          held: false,
          payload: '""',
          payload_sha256: '',
        });
        tx.outbox.insert({
          message_id: ids.message_id,
          peer_key: bob.key,
          wire_id: ids.message_id,
          secret: '',
          bytes: 0,
          expires_ms: 1e15,
        });
      }
    });
    expect(await codeOf({ peer: 'bob', ...at })).toBe('storage_quota_exceeded');
    delete alice.quota;
    expect(await codeOf({ peer: 'bob' })).toBe('outbox_full');
    // envelope size before the router, the router before generation and session
    const large = { target_kind: 'session', recipient: 's7', payload: 'x'.repeat(20_000) };
    alice.onNotify = () => ({ delivered: false, reason: 'never_registered' });
    expect(await codeOf(large)).toBe('native_message_too_large');
    const { Fault } = await import('../../src/protocol/errors.ts');
    alice.onNotify = () => {
      throw new Fault('router_unreachable', 'none runs');
    };
    expect(await codeOf({ ...large, payload: 'small', expected_generation: 3 })).toBe('router_unreachable');
    alice.onNotify = () => ({ delivered: false, reason: 'generation_changed' });
    expect(await codeOf({ ...large, payload: 'small 2', expected_generation: 3 })).toBe('generation_changed');
    alice.onNotify = () => ({ delivered: false, reason: 'not_live' });
    expect(await codeOf({ ...large, payload: 'small 3' })).toBe('recipient_unavailable');
  }, 30_000);
});

describe('[MSG-030, INB-155] the state of a recipient', () => {
  it('is one of its values, for a session of this machine by what is known of it', async () => {
    const desk = await openScene();
    const stateOf = async (recipient: string) => (await posted(desk, { recipient })).recipient_presence;
    await attach(desk, 's1', { principal_id: 'live' });
    await attach(desk, 's2', { principal_id: 'deaf', bell: 'none', adapter_kind: 'poll' });
    const full = await attach(desk, 's3', { principal_id: 'full' });
    const { delivery_id } = await posted(desk, { recipient: 'other' });
    await desk.store.write((tx) => {
      for (let nth = 0; nth < 64; nth += 1)
        tx.attempts.start({
          attempt_id: `a${nth}`,
          delivery_id,
          connection_id: full.connection_id,
          router_instance: 'run_1',
          at: '2026-03-01T12:00:00.000Z',
        });
    });
    expect([
      await stateOf('live'),
      await stateOf('deaf'),
      await stateOf('full'),
      await stateOf('nobody'),
    ]).toEqual(['live', 'deaf', 'full', 'unknown']);
    const before = desk.counts();
    const gone = await attach(desk, 's4', { principal_id: 'gone' });
    const { disconnect } = await import('../../src/sessions/disconnect.ts');
    await disconnect(desk.board, gone.connection_id, 'adapter_disconnect');
    expect(await stateOf('gone')).toBe('gone');
    await desk.clock.advance(70_000);
    expect(await stateOf('live')).toBe('away');
    expect(desk.counts().presence).toBe((before.presence as number) + 2);
    const { Fault } = await import('../../src/protocol/errors.ts');
    desk.onNotify = () => {
      throw new Fault('router_unreachable', 'none runs');
    };
    expect(await stateOf('live')).toBe('not_checked');
    // A principal shows the best of its sessions.
    const order = ['live', 'full', 'deaf', 'away', 'gone'] as const;
    const { bestPresence } = await import('../../src/protocol/session.ts');
    for (const [nth, best] of order.entries()) expect(bestPresence(order.slice(nth).toReversed())).toBe(best);
  });
});

describe('the state of a delivery', () => {
  it('[MSG-133, INB-101] is one of eight, computed of facts and never stored', async () => {
    alice.start();
    const seen = new Set<string>();
    const stateOf = (message_id: string) => {
      const { delivery_state } = ok(receipts(alice, { project: 'shop', recipient: 'bob', message_id }));
      seen.add(delivery_state);
      return delivery_state;
    };
    relay.breakDown();
    const sent = await send();
    expect(stateOf(sent.message_id)).toBe('pending');
    relay.down = undefined;
    await relay.client(bob.identity).register(bob.queue, { door: false });
    await world.pass(10 * secondMs);
    expect(stateOf(sent.message_id)).toBe('bus_accepted');
    bob.start();
    await world.pass(5 * secondMs);
    expect(stateOf(sent.message_id)).toBe('receiver_stored');
    const [got] = ok(receive(bob, { project: 'shop', recipient: 'bob' }, cli)).messages;
    ok(
      await acknowledge(bob, { messages: [got?.receipt as object], project: 'shop', recipient: 'bob' }, cli),
    );
    await world.pass(5 * secondMs);
    expect(stateOf(sent.message_id)).toBe('receiver_acknowledged');
    const local = await posted(alice);
    const at = (state: 'inbox_queued' | 'notification_sent' | 'host_queued' | 'delivery_failed') =>
      alice.store.write((tx) => {
        const notification_id = `n-${state}`;
        tx.notices.open({
          notification_id,
          session_root: 's1',
          state,
          step: 0,
          rung_at_ms: 0,
          expires_at_ms: 1e15,
        });
        tx.notices.cover(notification_id, [local.delivery_id]);
        tx.notices.markRung(notification_id);
      });
    expect(stateOf(local.message_id)).toBe('receiver_stored');
    for (const state of ['inbox_queued', 'notification_sent', 'host_queued', 'delivery_failed'] as const) {
      await at(state);
      expect(stateOf(local.message_id)).toBe(state);
    }
    expect(seen.size).toBe(8);
    const columns = alice.rows(
      "SELECT p.name FROM sqlite_schema s, pragma_table_info(s.name) p WHERE s.type = 'table'",
    );
    expect(columns.map(({ name }) => name)).not.toContain('delivery_state');
  });
});

describe('a session of a peer', () => {
  it('[PEER-056] is named exactly, or on the command line by a prefix that only one has; an unknown id is taken as it is, and gone', async () => {
    await listing('abc-1', 'abc-2', 'xyz-1');
    const meant = (recipient: string) => sessionMeantBy(alice, { peer: 'bob', recipient });
    expect([meant('abc-1'), meant('x'), meant('nope')]).toEqual(['abc-1', 'xyz-1', 'nope']);
    expect(refused(meant('abc')).code).toBe('ambiguous_peer');
    const session = { target_kind: 'session' };
    // A tool takes it literally.
    expect((await send({ ...session, recipient: 'x' })).recipient).toBe('x');
    expect((await send({ ...session, recipient: 'nope' })).recipient_presence).toBe('gone');
  });
});

describe('a peer', () => {
  it('[PEER-017] that was removed is refused from the next message on, left off the card, and its mail ends; history stays', async () => {
    alice.start();
    bob.start();
    await world.pass(2 * secondMs);
    const before = ok(await post(bob, { peer: 'alice', recipient: 'anna' }));
    await world.pass(5 * secondMs);
    relay.onPost = ({ queue }) => (queue === bob.queue ? relay.fail(503, 'store_unavailable') : undefined);
    const waiting = await send();
    alice.peers = [];
    await world.pass(11 * 60 * secondMs);
    relay.onPost = () => undefined;
    expect(
      ok(receipts(alice, { project: 'shop', recipient: 'bob', message_id: waiting.message_id })).receipts,
    ).toMatchObject([{ receipt_kind: 'refused', value: 'peer_removed', source: 'outbox' }]);
    const after = ok(await post(bob, { peer: 'alice', recipient: 'anna' }));
    await world.pass(10 * secondMs);
    const { history } = await import('../../src/mailbox/history.ts');
    const shown = ok(await history(alice, { project: 'shop', recipient: 'anna', peer: bob.key }, cli));
    expect(shown.messages.map(({ origin }) => origin?.message_id)).toEqual([
      bob.store.read((tx) => tx.outbox.of(before.message_id)?.wire_id),
    ]);
    expect(alice.store.read((tx) => tx.gate.counts())).toContainEqual(
      expect.objectContaining({ step: 'authorised' }),
    );
    expect(bob.store.read((tx) => tx.outbox.of(after.message_id)?.ended_at)).toBeNull();
    const { openCard } = await import('../../src/crypto/sealed-card.ts');
    const held = relay.queues.get(alice.queue)?.card as Uint8Array;
    expect(openCard({ card: held, seed: bob.identity.seed, owner: alice.key, deviceId: alice.device })).toBe(
      'unopenable',
    );
  });

  it('[PEER-018] is found by its petname and `self` in any case, and by its exact key', async () => {
    const { addressee } = await import('../../src/peers/who.ts');
    for (const name of ['bob', 'BOB', 'Bob', bob.key])
      expect(ok(addressee(alice.account, name)).key).toBe(bob.key);
    for (const name of ['self', 'SELF', 'Self', alice.key])
      expect(ok(addressee(alice.account, name)).own).toBe(true);
    for (const name of ['bo', bob.key.toLowerCase(), bob.key.slice(0, 8), ''])
      expect(refused(addressee(alice.account, name)).code).toBe('unknown_peer');
    alice.policyFault = noSuchFile;
    expect(refused(addressee(alice.account, 'bob')).code).toBe('store_unreadable');
  });
});

describe('what a relay sees', () => {
  it('[PEER-094] is neither sender nor ids, project or text', async () => {
    bob.start();
    alice.start();
    await world.pass(secondMs);
    const sent = await send({
      payload: 'a secret text',
      project: 'secret-project',
      recipient: 'secret-name',
      task_id: 'secret-task',
    });
    await world.pass(10 * secondMs);
    const wire = alice.store.read((tx) => tx.outbox.of(sent.message_id)?.wire_id) as string;
    const seen = relay.posts.map(({ body }) => Buffer.from(body));
    expect(seen.length).toBeGreaterThan(1);
    for (const body of seen)
      for (const text of [
        'secret',
        'alice',
        alice.key,
        Buffer.from(alice.key, 'base64url').toString('latin1'),
      ])
        expect(body.toString('latin1')).not.toContain(text);
    for (const body of seen) expect(body.includes(Buffer.from(wire.replaceAll('-', ''), 'hex'))).toBe(false);
    // The id of an item is its own, too, and another one for each queue and half day.
    const { secret } = alice.store.read((tx) => tx.outbox.of(sent.message_id)) as { secret: string };
    const first = relay.posts.find(({ queue }) => queue === bob.queue);
    const bytes = bytesOfHex(secret, 16) as Uint8Array;
    const ids = [0, 11 * hourMs, 13 * hourMs].map((ms) =>
      itemId({
        secret: bytes,
        queue: bob.queue,
        signedAtMs: Math.floor(world.clock.nowMs() / (12 * hourMs)) * 12 * hourMs + ms,
      }),
    );
    expect(first?.id).toBe(ids[0]);
    expect(ids[1]).toBe(ids[0]);
    expect(ids[2]).not.toBe(ids[0]);
  });

  it('[REL-011] is the same item where it is posted again within its half day, and another one after', async () => {
    await relay.client(bob.identity).register(bob.queue, { door: false });
    alice.start();
    await world.pass(secondMs);
    await send();
    await world.pass(7 * 60 * secondMs);
    const posts = relay.posts.filter(({ queue }) => queue === bob.queue);
    expect(posts.length).toBeGreaterThan(2);
    expect(new Set(posts.map(({ id }) => id)).size).toBe(1);
    expect(relay.depth(bob.queue)).toBe(1);
    await world.pass(13 * hourMs);
    expect(new Set(relay.posts.filter(({ queue }) => queue === bob.queue).map(({ id }) => id)).size).toBe(2);
  });
});

describe('a remote receipt', () => {
  it('[PEER-080] is worded as what a store recorded, nowhere as what a model understood', () => {
    const root = fileURLToPath(new URL('../../', import.meta.url));
    const files = ['src/surfaces', 'src/peers', 'src/mailbox', 'src/protocol'].flatMap((folder) =>
      readdirSync(`${root}${folder}`, { recursive: true, encoding: 'utf8' })
        .filter((name) => name.endsWith('.ts'))
        .map((name) => readFileSync(`${root}${folder}/${name}`, 'utf8')),
    );
    const texts = files.join('\n').match(/(['"`])(?:(?!\1)[^\\\n]|\\.)*\1/g) ?? [];
    expect(texts.length).toBeGreaterThan(2_000);
    const claims = texts.filter((text) =>
      /\b(peer|receiver|recipient|it)\b[^.;]*\b(has )?(read|seen|understood|processed) (it|the message|your)/i.test(
        text,
      ),
    );
    expect(claims).toEqual([]);
    expect(files.join('\n')).toContain('receiver acknowledgement is unknown');
  });
});
