// What each frame may do, without a socket: the router's handlers over the real use cases.

import type { Socket } from 'node:net';
import { beforeEach, describe, expect, it } from 'vitest';
import { receipts } from '../../src/mailbox/receipts.ts';
import type { ConnectionRow } from '../../src/ports/presence.ts';
import { isRefusal } from '../../src/protocol/errors.ts';
import { discoverFields } from '../../src/protocol/requests.ts';
import { Connections, type Peer } from '../../src/router/connections.ts';
import { Dispatches } from '../../src/router/dispatches.ts';
import { type Handlers, handlersOf } from '../../src/router/handlers.ts';
import { FrameRate } from '../../src/router/rate.ts';
import { routerServer } from '../../src/router/server.ts';
import { settle } from './clock.ts';
import { letter, ok, openScene, post, posted, read, refused, registration, type Scene } from './desk.ts';

let desk: Scene;
let connections: Connections;
let handlers: Handlers;
beforeEach(async () => {
  desk = await openScene();
  connections = new Connections(desk.clock, 10_000);
  const board = {
    ...desk.board,
    hand: connections.hand.bind(connections),
  };
  const log = { info: () => {}, warn: () => {} };
  const end = { describe: () => ({}), stop: () => {} };
  const context = { board, connections, token: 'token', log, version: '0.1.0', ...end };
  handlers = handlersOf(context, new Dispatches(context));
});

/** A process on the socket, and the frames it was sent. */
function process(): { peer: Peer; frames: Record<string, unknown>[] } {
  const frames: Record<string, unknown>[] = [];
  const write = (line: string): boolean => frames.push(JSON.parse(line) as Record<string, unknown>) > 0;
  const socket = { destroyed: false, write } as unknown as Socket;
  return {
    peer: { socket, connection: undefined, turn: Promise.resolve(), rate: new FrameRate(desk.clock) },
    frames,
  };
}

const credentials = { auth_token: 'token', postbell_version: '0.1.0' };

interface Key {
  connection_id: string;
  generation: number;
  lease_ms: number;
}

async function register(peer: Peer, session_id: string, over = {}): Promise<Key> {
  const result = await handlers.register(peer, { ...credentials, ...registration(session_id), ...over });
  if (isRefusal(result)) throw new Error(result.message);
  const { connection_id, generation, lease_ms } = result as Key;
  return { connection_id, generation, lease_ms };
}

const where = { project: 'shop', session_id: 's1' };

describe('the router', () => {
  it('[SES-095] has one operation for a delivery in flight: a second notify joins it', async () => {
    const { peer, frames } = process();
    const key = await register(peer, 's1');
    const { delivery_id } = await posted(desk);
    const asked = { auth_token: 'token', project: 'shop', delivery_id, wait: true };
    const first = handlers.notify(process().peer, asked);
    const second = handlers.notify(process().peer, asked);
    await settle();
    expect(frames).toHaveLength(1);
    const { attempt_id } = frames[0] as { attempt_id: string };
    const outcome = { attempt_id, delivery_id, ...keyOf(key), content: 'notice', receipt: {} } as const;
    expect(await handlers.host_accept(peer, outcome)).toEqual({ correlated: true });
    expect(await handlers.host_accept(peer, outcome)).toEqual({ duplicate: true });
    expect(await first).toMatchObject({ delivered: true });
    expect(await second).toEqual(await first);
    expect(desk.counts()).toMatchObject({ attempt: 1, host_accept: 1 });
  });

  it('[SES-095] tells whoever joined that it failed, and does not try again for them', async () => {
    const { peer, frames } = process();
    const key = await register(peer, 's1', { bell: 'channel', adapter_kind: 'claude-channel' });
    const { delivery_id } = await posted(desk);
    const asked = { auth_token: 'token', project: 'shop', delivery_id, wait: true };
    const told = [1, 2, 3].map(() => handlers.notify(process().peer, asked));
    await settle();
    const { attempt_id } = frames[0] as { attempt_id: string };
    const failure_code = 'adapter_rejected';
    await handlers.host_reject(peer, { attempt_id, delivery_id, ...keyOf(key), failure_code });
    await settle();
    for (const one of told) expect(await one).toEqual({ delivered: false, reason: failure_code });
    expect(frames).toHaveLength(1);
    expect(desk.counts()).toMatchObject({ attempt: 1, host_accept: 0 });
  });

  it.each(['replaced', 'expired'])(
    '[SES-041] takes no outcome and no end from a connection that was %s',
    async (how) => {
      const old = process();
      const key = await register(old.peer, 's1');
      const { delivery_id } = await posted(desk);
      const asked = { auth_token: 'token', project: 'shop', delivery_id, wait: true };
      const told = handlers.notify(process().peer, asked);
      await settle();
      const { attempt_id } = old.frames[0] as { attempt_id: string };
      const newer = process();
      if (how === 'replaced') await register(newer.peer, 's1');
      else desk.clock.jump(60_001);
      const outcome = { attempt_id, delivery_id, ...keyOf(key) };
      for (const frame of [
        handlers.host_accept(old.peer, { ...outcome, content: 'notice', receipt: {} }),
        handlers.host_reject(old.peer, { ...outcome, failure_code: 'adapter_error' }),
        handlers.disconnect(old.peer, { ...where, ...keyOf(key) }),
        handlers.heartbeat(old.peer, { ...where, ...keyOf(key) }),
      ])
        expect(refused(await frame).code).toBe('stale_generation');
      await desk.clock.advance(10_000);
      const reason = how === 'replaced' ? 'replaced' : 'not_live';
      expect(await told).toEqual({ delivered: false, reason, unclear: true });
      expect(desk.rows('SELECT state FROM attempt')).toEqual([{ state: 'stale_generation' }]);
      expect(desk.counts().host_accept).toBe(0);
      if (how === 'replaced') expect(newer.peer.connection).toBeDefined();
    },
  );

  it('[MSG-009] registers and discovers under one spelling: decomposed, composed, with spaces around', async () => {
    const spellings = [' cafe\u0301 ', 'caf\u00e9'];
    for (const [index, name] of spellings.entries()) {
      const { peer } = process();
      await register(peer, `s${index}`, { project: name, principal_id: name });
      for (const asked of spellings) {
        const { project } = read(discoverFields, { project: asked });
        const { cards } = (await handlers.discover(peer, { auth_token: 'token', project })) as {
          cards: object[];
        };
        expect(cards).toHaveLength(index + 1);
        for (const card of cards)
          expect(card).toMatchObject({ project: 'caf\u00e9', principal_id: 'caf\u00e9' });
      }
    }
  });

  it('[SES-030] registers no session id that is too long or has a control character', async () => {
    const { peer } = process();
    await register(peer, 'x'.repeat(128));
    for (const session_id of ['x'.repeat(129), 'a\n', '', '\ud800']) {
      const frame = { ...credentials, ...registration('s1'), session_id };
      expect(refused(await handlers.register(process().peer, frame)).code).toBe('invalid_field');
    }
    expect(desk.counts()).toMatchObject({ connection: 1 });
  });

  it('[SES-102] waits 10 s for a host, 100 ms to 10 min where it is set so, then records that, and tells the sender', async () => {
    const { peer, frames } = process();
    await register(peer, 's1');
    const { delivery_id } = await posted(desk);
    const told = handlers.notify(process().peer, {
      auth_token: 'token',
      project: 'shop',
      delivery_id,
      wait: true,
    });
    await desk.clock.advance(9_999);
    expect(desk.rows('SELECT state FROM attempt')).toEqual([{ state: 'started' }]);
    await desk.clock.advance(1);
    expect(await told).toEqual({ delivered: false, reason: 'host_outcome_timeout', unclear: true });
    expect(desk.rows('SELECT state, failure_code FROM attempt')).toEqual([
      { state: 'adapter_failed', failure_code: 'host_outcome_timeout' },
    ]);
    expect(frames.map(({ type }) => type)).toEqual(['deliver']);
    const log = { info: () => {}, warn: () => {} };
    const options = { token: 'token', log, pid: 1, version: '0.1.0', stop: () => {} };
    const made = (hostOutcomeWaitMs: number) =>
      routerServer({ ports: { ...desk.board, hostOutcomeWaitMs }, ...options });
    for (const waitMs of [99, 600_001]) expect(() => made(waitMs)).toThrow(/100 ms to 10 min/);
    for (const waitMs of [100, 600_000]) {
      made(waitMs);
      const set = new Connections(desk.clock, waitMs);
      set.add('con_1', peer);
      const handOff = { attempt_id: 'a', delivery_id: 'd', project: 'p', principal_id: 'b', session_id: 's' };
      const outcome = set.hand({ connection_id: 'con_1', generation: 1 } as ConnectionRow, {
        ...handOff,
        content: 'notice',
        envelope: {},
      });
      await desk.clock.advance(waitMs - 1);
      expect(desk.clock.pending).toBe(1);
      await desk.clock.advance(1);
      expect(await outcome).toEqual({ outcome: 'timeout' });
    }
  });

  it('[MSG-039] has at most 64 hand-offs of one connection unanswered: the 65th is refused as busy', async () => {
    const { peer, frames } = process();
    const key = await register(peer, 's1');
    const asked: Promise<object>[] = [];
    const notify = async (recipient = 's1') => {
      const { details } = refused(await post(desk, letter({ target_kind: 'session', recipient })));
      const delivery_id = String(details?.delivery_id);
      const fields = { auth_token: 'token', project: 'shop', delivery_id, wait: true };
      return () => Promise.resolve(handlers.notify(process().peer, fields)) as Promise<object>;
    };
    const calls = [];
    for (let n = 0; n < 65; n += 1) calls.push(await notify());
    // All at once: what is not handed over yet counts as well.
    for (const call of calls) asked.push(call());
    await settle();
    expect(await asked[64]).toEqual({ delivered: false, reason: 'busy' });
    expect(frames).toHaveLength(64);
    expect(desk.counts().attempt).toBe(64);
    const other = process();
    await register(other.peer, 's2');
    const elsewhere = (await notify('s2'))();
    await settle();
    expect(other.frames).toMatchObject([{ type: 'deliver', session_id: 's2' }]);
    const { attempt_id, delivery_id } = frames[0] as { attempt_id: string; delivery_id: string };
    await handlers.host_reject(peer, {
      attempt_id,
      delivery_id,
      ...keyOf(key),
      failure_code: 'adapter_error',
    });
    await settle();
    const next = (await notify())();
    await settle();
    expect(frames).toHaveLength(65);
    await desk.clock.advance(10_000);
    for (const silent of [next, elsewhere])
      expect(await silent).toEqual({ delivered: false, reason: 'host_outcome_timeout', unclear: true });
  });

  it('[SES-042, SES-086] tells a replaced connection so, and sends it nothing more', async () => {
    const old = process();
    const key = await register(old.peer, 's1');
    const newer = process();
    await register(newer.peer, 's1');
    expect(old.frames).toMatchObject([{ type: 'session_superseded', ...keyOf(key) }]);
    const { delivery_id } = await posted(desk);
    void handlers.notify(process().peer, { auth_token: 'token', project: 'shop', delivery_id });
    await settle();
    expect(old.frames).toHaveLength(1);
    expect(newer.frames).toMatchObject([{ type: 'deliver', delivery_id, generation: 2 }]);
    for (const frame of [...old.frames, ...newer.frames])
      expect(frame).toMatchObject({ v: 1, hops: 0, request_id: expect.stringMatching(/./) });
    expect(refused(await handlers.heartbeat(old.peer, { ...where, ...keyOf(key) })).code).toBe(
      'stale_generation',
    );
    await desk.clock.advance(10_000);
  });

  it('[MSG-100] takes a receipt of 16,384 bytes as JSON, and no larger one', async () => {
    const { peer, frames } = process();
    const key = await register(peer, 's1');
    const { delivery_id, message_id } = await posted(desk);
    const told = handlers.notify(process().peer, {
      auth_token: 'token',
      project: 'shop',
      delivery_id,
      wait: true,
    });
    await settle();
    const { attempt_id } = frames[0] as { attempt_id: string };
    const accept = (bytes: number) => {
      const receipt = 'x'.repeat(bytes - 2);
      return handlers.host_accept(peer, {
        attempt_id,
        delivery_id,
        ...keyOf(key),
        content: 'notice',
        receipt,
      });
    };
    expect(refused(await accept(16_385)).code).toBe('invalid_adapter_receipt');
    expect(await accept(16_384)).toEqual({ correlated: true });
    expect(await told).toMatchObject({ delivered: true });
    const facts = ok(receipts(desk, { project: 'shop', recipient: 'bob', message_id })).receipts;
    const receipt = 'x'.repeat(16_382);
    const taken = { source: 'host_accept', value: 'notice', adapter_kind: 'claude-listener', receipt };
    expect(facts.filter(({ receipt_kind }) => receipt_kind === 'host_accept')).toMatchObject([taken]);
  });

  it('renews a lease for as long as the host asked for', async () => {
    const { peer } = process();
    const key = await register(peer, 's1', { lease_ms: 300_000 });
    await desk.clock.advance(150_000);
    expect(await handlers.heartbeat(peer, { ...where, ...keyOf(key) })).toEqual({
      generation: 1,
      lease_ms: 300_000,
    });
    await desk.clock.advance(299_000);
    expect(await handlers.discover(peer, { auth_token: 'token', project: 'shop' })).toMatchObject({
      cards: [{ session_id: 's1' }],
    });
  });

  it('tells more of its cards where it is asked in detail', async () => {
    const { peer } = process();
    await register(peer, 's1');
    const asked = { auth_token: 'token', project: 'shop' };
    const cardsOf = async (more: { detail?: boolean }) =>
      ((await handlers.discover(peer, { ...asked, ...more })) as { cards: object[] }).cards;
    const [card] = await cardsOf({});
    expect(await cardsOf({ detail: true })).toEqual([
      {
        ...card,
        bell: 'listener',
        bell_state: { state: 'live', last_rings: [] },
        waiting: 0,
        connected_at: '2026-03-01T12:00:00.000Z',
      },
    ]);
    expect(card).not.toHaveProperty('bell');
  });

  it('takes no request with a wrong token, and no outcome from another connection', async () => {
    const { peer } = process();
    const key = await register(peer, 's1');
    const other = process().peer;
    const auth_token = 'other';
    for (const asked of [
      handlers.register(other, { ...credentials, ...registration('s2'), auth_token }),
      handlers.discover(other, { auth_token, project: 'shop' }),
      handlers.notify(other, { auth_token, project: 'shop', delivery_id: 'd' }),
      handlers.status(other, { auth_token }),
      handlers.stop(other, { auth_token }),
    ])
      expect(refused(await asked).code).toBe('authentication_failed');
    const outcome = { attempt_id: 'a', delivery_id: 'd', ...keyOf(key) };
    for (const asked of [
      handlers.heartbeat(other, { ...where, ...keyOf(key) }),
      handlers.disconnect(other, { ...where, ...keyOf(key) }),
      handlers.host_accept(other, { ...outcome, content: 'notice', receipt: null }),
      handlers.host_reject(other, { ...outcome, failure_code: 'x' }),
      handlers.heartbeat(peer, { ...where, ...keyOf(key), generation: 2 }),
    ])
      expect(refused(await asked).code).toBe('stale_generation');
    expect(desk.counts()).toMatchObject({ connection: 1 });
  });

  const keyOf = ({ connection_id, generation }: Key) => ({ connection_id, generation });
});
