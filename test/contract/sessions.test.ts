// Who is live: registrations, generations, leases, and what a sender is told of them.

import { beforeEach, describe, expect, it } from 'vitest';
import { listenerBell } from '../../src/hosts/claude-code/bell.ts';
import { ringForHandOff } from '../../src/mailbox/ring.ts';
import { readFields } from '../../src/protocol/fields.ts';
import { discoverFields } from '../../src/protocol/requests.ts';
import { closeLeftOpen, disconnect, expireLeases } from '../../src/sessions/disconnect.ts';
import { discover } from '../../src/sessions/discover.ts';
import { dispatch } from '../../src/sessions/dispatch.ts';
import { heartbeat } from '../../src/sessions/heartbeat.ts';
import { register } from '../../src/sessions/register.ts';
import {
  accepted,
  attach,
  difference,
  ok,
  openScene,
  post,
  posted,
  read,
  refused,
  registration,
  type Scene,
} from './desk.ts';

import { fault, ringing } from './rung.ts';

let desk: Scene;
beforeEach(async () => {
  desk = await openScene();
});

const cards = (project = 'shop', limit?: number) =>
  discover(desk.board, { project, ...(limit !== undefined && { limit }) });
const beat = (connection_id: string, generation: number, work_summary?: string) =>
  heartbeat(desk.board, { connection_id, generation, ...(work_summary !== undefined && { work_summary }) });
const presence = () =>
  desk
    .rows('SELECT connection_id, transition, reason, recorded_at FROM presence ORDER BY seq')
    .map((row) => ({ ...row }));

describe('a registration', () => {
  it('[SES-018] has a generation that rises with every new one of its id in its project', async () => {
    const generations: number[] = [];
    for (let n = 0; n < 3; n += 1) generations.push((await attach(desk, 's1')).generation);
    expect(generations).toEqual([1, 2, 3]);
    expect((await attach(desk, 's1', { project: 'bank' })).generation).toBe(1);
    expect((await attach(desk, 's2')).generation).toBe(1);
    const last = await attach(desk, 's1');
    await disconnect(desk.board, last.connection_id, 'socket_closed');
    expect((await attach(desk, 's1')).generation).toBe(5);
    await desk.store.write((tx) => tx.identity.link('s1b', 's1'));
    expect((await attach(desk, 's1b')).generation).toBe(1);
    expect((await attach(desk, 's1')).generation).toBe(6);
    expect(cards().map(({ session_id, generation }) => [session_id, generation])).toEqual([
      ['s1', 6],
      ['s2', 1],
    ]);
  });

  it('of a session that nobody named is no other principal after /clear: it replaces what is live', async () => {
    await attach(desk, 'a', { principal_id: 'claude-session-a' });
    const cleared = registration('b', { principal_id: 'claude-session-b' });
    await desk.store.write((tx) => tx.identity.link('b', 'a'));
    expect(ok(await register(desk.board, cleared)).replaced).toMatchObject([{ session_id: 'a' }]);
    const stranger = registration('b', { principal_id: 'claude-session-c' });
    expect(refused(await register(desk.board, stranger)).code).toBe('session_identity_conflict');
  });

  it('[SES-027] of a weaker bell is outranked; of a stronger or equal one it replaces what is live', async () => {
    const bells = ['none', 'listener', 'channel', 'codex-queue', 'acp'] as const;
    const strength = { none: 0, listener: 1, channel: 2, 'codex-queue': 2, acp: 2 };
    for (const live of bells)
      for (const newcomer of bells) {
        const id = `${live}-${newcomer}`;
        const held = await attach(desk, id, { bell: live });
        const result = await register(desk.board, registration(id, { bell: newcomer }));
        if (strength[newcomer] < strength[live]) expect(refused(result).code).toBe('bell_outranked');
        else expect(ok(result).replaced).toMatchObject([{ connection_id: held.connection_id }]);
        expect(
          refused(await register(desk.board, registration(id, { bell: 'acp', if_free: true }))).code,
        ).toBe('bell_outranked');
      }
    expect(cards('shop', 100)).toHaveLength(25);
  });

  it('ends every live connection of its session, also of ids that were linked while both were live', async () => {
    await attach(desk, 'x1');
    await attach(desk, 'x2', { bell: 'channel' });
    await desk.store.write((tx) => tx.identity.link('x2', 'x1'));
    const before = desk.counts();
    expect(refused(await register(desk.board, registration('x1'))).code).toBe('bell_outranked');
    expect(desk.counts()).toEqual(before);
    const { replaced } = await attach(desk, 'x1', { bell: 'channel' });
    expect(replaced.map(({ session_id }) => session_id)).toEqual(['x2', 'x1']);
    expect(cards().map(({ session_id, generation }) => [session_id, generation])).toEqual([['x1', 2]]);
  });

  it('[SES-033] is the first of a principal once: its checkpoint never moves', async () => {
    await posted(desk);
    const early = await posted(desk);
    await posted(desk, { project: 'bank' });
    await attach(desk, 's1');
    const late = await posted(desk);
    const checkpoint = () =>
      desk.rows(`SELECT activation_checkpoint AS at FROM principal WHERE project = 'shop'`);
    expect(checkpoint()).toEqual([{ at: 2 }]);
    expect(await dispatch(desk.board, 'shop', early.delivery_id)).toMatchObject({
      reason: 'before_checkpoint',
    });
    expect(await dispatch(desk.board, 'shop', late.delivery_id)).toMatchObject({ delivered: true });
    await attach(desk, 's1');
    await attach(desk, 's2');
    expect(checkpoint()).toEqual([{ at: 2 }]);
    expect(desk.handed.map(({ delivery_id }) => delivery_id)).toEqual([late.delivery_id]);
  });

  it('of a live session under another principal is a conflict; of one that has ended it is not', async () => {
    const { connection_id } = await attach(desk, 's1');
    const other = registration('s1', { principal_id: 'carol', bell: 'channel' });
    expect(refused(await register(desk.board, other)).code).toBe('session_identity_conflict');
    await desk.store.write((tx) => tx.identity.link('s1b', 's1'));
    const alias = { ...other, session_id: 's1b' };
    expect(refused(await register(desk.board, alias)).code).toBe('session_identity_conflict');
    await disconnect(desk.board, connection_id, 'adapter_disconnect');
    expect(ok(await register(desk.board, other)).generation).toBe(2);
    expect(cards()).toMatchObject([{ session_id: 's1', principal_id: 'carol', generation: 2 }]);
  });
});

describe('a lease', () => {
  it('[SES-035] decides who is live, for everyone who asks', async () => {
    const live = async () => ({
      cards: cards().length,
      presence: (await sent()).recipient_presence,
      dispatched: await handedTo(await sent()),
      toPrincipal: await handedTo(await posted(desk)),
      toSession: await handedTo(await exact()),
    });
    const handedTo = async ({ delivery_id }: { delivery_id: string }) =>
      (await dispatch(desk.board, 'shop', delivery_id)).reason !== 'not_live';
    const sent = () => posted(desk, { intended_session: 's1', status: 'result' });
    const exact = async () =>
      refused(await post(desk, { recipient: 's1', target_kind: 'session' })).details as {
        delivery_id: string;
      };
    const everywhere = { dispatched: true, toPrincipal: true, toSession: true };
    const nowhere = { dispatched: false, toPrincipal: false, toSession: false };
    const { connection_id } = await attach(desk, 's1');
    expect(await live()).toEqual({ cards: 1, presence: 'live', ...everywhere });
    await desk.clock.advance(59_999);
    expect(await live()).toEqual({ cards: 1, presence: 'live', ...everywhere });
    await desk.clock.advance(1);
    expect(await live()).toEqual({ cards: 0, presence: 'away', ...nowhere });
    const again = await attach(desk, 's1');
    expect(again.connection_id).not.toBe(connection_id);
    await disconnect(desk.board, again.connection_id, 'socket_closed');
    expect(await live()).toEqual({ cards: 0, presence: 'gone', ...nowhere });
  });

  it('is not renewed once its connection has ended, though the heartbeat came before', async () => {
    const { connection_id, generation } = await attach(desk, 's1');
    await desk.clock.advance(1_000);
    const lease = () =>
      desk.rows(
        'SELECT lease_expires_at_ms, disconnect_reason FROM connection WHERE connection_id = ?',
        connection_id,
      );
    const before = lease()[0]?.lease_expires_at_ms;
    let replaced = false;
    const write: Scene['store']['write'] = async (work) => {
      if (!replaced) await attach(desk, 's1');
      replaced = true;
      return desk.store.write(work);
    };
    const board = { ...desk.board, store: { ...desk.store, write } };
    await heartbeat(board, { connection_id, generation, work_summary: 'sanding' });
    expect(lease()).toEqual([{ lease_expires_at_ms: before, disconnect_reason: 'superseded' }]);
    expect(desk.rows('SELECT work_summary FROM session')).toEqual([{ work_summary: null }]);
  });

  it('[SES-036] is renewed in place: 100 heartbeats append nothing', async () => {
    const { connection_id, generation, lease_ms } = await attach(desk, 's1');
    expect(lease_ms).toBe(60_000);
    const before = desk.counts();
    const touches = desk.wake.touches;
    for (let n = 0; n < 100; n += 1) {
      await desk.clock.advance(30_000);
      expect(ok(await beat(connection_id, generation))).toEqual({ generation, lease_ms: 60_000 });
    }
    expect(difference(before, desk.counts())).toEqual({});
    expect(desk.wake.touches).toBe(touches);
    expect(cards()[0]?.lease_expires_at_ms).toBe(desk.clock.nowMs() + 60_000);
  });

  it('[SES-034] is asked for up to 5 minutes', async () => {
    expect((await attach(desk, 's1', { lease_ms: 300_000 })).lease_ms).toBe(300_000);
    expect((await attach(desk, 's2', { lease_ms: 900_000 })).lease_ms).toBe(300_000);
    expect((await attach(desk, 's3', { lease_ms: 1 })).lease_ms).toBe(1);
  });

  it('that ran out, or a connection that was replaced, cannot be renewed', async () => {
    const first = await attach(desk, 's1');
    const second = await attach(desk, 's1');
    expect(refused(await beat(first.connection_id, first.generation)).code).toBe('stale_generation');
    expect(refused(await beat(second.connection_id, first.generation)).code).toBe('stale_generation');
    expect(refused(await beat('con_unknown', 1)).code).toBe('stale_generation');
    ok(await beat(second.connection_id, second.generation));
    await desk.clock.advance(60_000);
    expect(refused(await beat(second.connection_id, second.generation)).code).toBe('stale_generation');
    expect(await expireLeases(desk.board)).toEqual([second.connection_id]);
    expect(await expireLeases(desk.board)).toEqual([]);
  });
});

describe('presence', () => {
  it('[SES-037, SES-040] is a fact of its own for each transition, with its time and reason', async () => {
    const first = await attach(desk, 's1');
    await desk.clock.advance(1_000);
    const second = await attach(desk, 's1');
    await disconnect(desk.board, second.connection_id, 'adapter_disconnect');
    await disconnect(desk.board, second.connection_id, 'socket_closed');
    const third = await attach(desk, 's2');
    await disconnect(desk.board, third.connection_id, 'socket_closed');
    const fourth = await attach(desk, 's3');
    await desk.clock.advance(60_000);
    await expireLeases(desk.board);
    const fifth = await attach(desk, 's4');
    await closeLeftOpen(desk.board);
    expect(presence().at(-1)).toMatchObject({ connection_id: fifth.connection_id, transition: 'connected' });
    await closeLeftOpen({ ...desk.board, instance: 'run_2' });
    const at = ['2026-03-01T12:00:00.000Z', '2026-03-01T12:00:01.000Z', '2026-03-01T12:01:01.000Z'] as const;
    const row = (
      of: { connection_id: string },
      transition: string,
      reason: string | null,
      recorded_at: string,
    ) => ({
      connection_id: of.connection_id,
      transition,
      reason,
      recorded_at,
    });
    expect(presence()).toEqual([
      row(first, 'connected', null, at[0]),
      row(first, 'superseded', 'superseded', at[1]),
      row(second, 'connected', null, at[1]),
      row(second, 'disconnected', 'adapter_disconnect', at[1]),
      row(third, 'connected', null, at[1]),
      row(third, 'disconnected', 'socket_closed', at[1]),
      row(fourth, 'connected', null, at[1]),
      row(fourth, 'disconnected', 'lease_expired', at[2]),
      row(fifth, 'connected', null, at[2]),
      row(fifth, 'disconnected', 'router_restart', at[2]),
    ]);
  });

  it.each([
    ['live', ['live', 'away', 'deaf', 'gone']],
    ['deaf', ['gone', 'deaf', 'away']],
    ['away', ['gone', 'away']],
    ['gone', ['gone']],
    ['unknown', []],
  ])('of a principal is the best of its sessions: %s', async (best, states) => {
    for (const state of states) {
      const made = await attach(desk, state, {
        bell: state === 'deaf' ? 'none' : 'listener',
        lease_ms: state === 'away' ? 1 : 60_000,
      });
      if (state === 'gone') await disconnect(desk.board, made.connection_id, 'socket_closed');
    }
    await desk.clock.advance(1);
    expect((await posted(desk)).recipient_presence).toBe(best);
    for (const state of states)
      expect((await posted(desk, { intended_session: state })).recipient_presence).toBe(state);
    expect((await posted(desk, { intended_session: 'unheard of' })).recipient_presence).toBe('unknown');
    expect((await posted(desk, { project: 'bank' })).recipient_presence).toBe('unknown');
  });
});

describe('discovery', () => {
  it('[SES-055] lists one exact project, the newest registration first, 50 unless told otherwise', async () => {
    for (let n = 0; n < 60; n += 1) await attach(desk, `s${n}`);
    await attach(desk, 'far', { project: 'bank' });
    await attach(desk, 's3');
    expect(cards('bank').map(({ session_id }) => session_id)).toEqual(['far']);
    expect(cards('Bank')).toEqual([]);
    expect(cards()).toHaveLength(50);
    expect(
      cards()
        .slice(0, 3)
        .map(({ session_id }) => session_id),
    ).toEqual(['s3', 's59', 's58']);
    expect(cards('shop', 100)).toHaveLength(60);
    expect(cards('shop', 1).map(({ session_id }) => session_id)).toEqual(['s3']);
    for (const limit of [1, 100]) expect(read(discoverFields, { project: 'p', limit }).limit).toBe(limit);
    for (const limit of [0, 101])
      expect(refused(readFields(discoverFields, { project: 'p', limit })).code).toBe('invalid_request');
  });

  it('[SES-056, SES-059] shows a card with exactly its keys, and writes nothing', async () => {
    await posted(desk);
    await attach(desk, 's1', { work_summary: 'painting' });
    await posted(desk);
    const before = desk.counts();
    expect(discover(desk.board, { project: 'shop', detail: true })).toMatchObject([{ waiting: 2 }]);
    const touches = desk.wake.touches;
    expect(cards()).toEqual([
      {
        session_id: 's1',
        principal_id: 'bob',
        host_kind: 'claude',
        project: 'shop',
        model: null,
        work_summary: 'painting',
        active: true,
        generation: 1,
        lease_expires_at_ms: desk.clock.nowMs() + 60_000,
      },
    ]);
    expect(desk.counts()).toEqual(before);
    expect(desk.handed).toEqual([]);
    expect(desk.wake.touches).toBe(touches);
  });

  it('[SES-061] tells more in detail: bell, its state and last rings, what waits for it, and since when', async () => {
    await attach(desk, 'deaf', { bell: 'none' });
    await desk.clock.advance(5_000);
    await attach(desk, 's1');
    desk.onNotify = ({ project, delivery_id }) => dispatch(desk.board, project, delivery_id);
    desk.host = async (handOff) => {
      await ringForHandOff(desk, ringing, listenerBell(desk), handOff, fault);
      return accepted;
    };
    const rings: string[] = [];
    for (let n = 0; n < 4; n += 1) {
      rings.unshift(new Date(desk.clock.nowMs()).toISOString());
      await posted(desk, n === 0 ? { intended_session: 's1' } : {});
      await beatAll();
      await desk.clock.advance(301_000);
      await beatAll();
    }
    await posted(desk, { status: 'update', intended_session: 's1' });
    await posted(desk, { recipient: 's1', target_kind: 'session', status: 'update' });
    await posted(desk, { intended_session: 'other' });
    // Reserved, and not rung.
    desk.host = () => ({ outcome: 'timeout' });
    refused(await post(desk, { recipient: 's1', target_kind: 'session' }));
    const detailed = discover(desk.board, { project: 'shop', detail: true });
    const plain = cards();
    expect(detailed.map((card) => Object.fromEntries(Object.entries(card).slice(0, 9)))).toEqual(plain);
    const [first, second] = detailed.map((card) => Object.fromEntries(Object.entries(card).slice(9)));
    expect(first).toEqual({
      bell: 'listener',
      bell_state: { state: 'live', last_rings: rings.slice(0, 3) },
      waiting: 7,
      connected_at: '2026-03-01T12:00:05.000Z',
    });
    expect(second).toEqual({
      bell: 'none',
      bell_state: { state: 'deaf', reason: 'no_bell', last_rings: [] },
      waiting: 3,
      connected_at: '2026-03-01T12:00:00.000Z',
    });
    const keys = [
      'session_id',
      'principal_id',
      'host_kind',
      'project',
      'model',
      'work_summary',
      'active',
      'generation',
      'lease_expires_at_ms',
    ];
    for (const card of plain) expect(Object.keys(card).toSorted()).toEqual(keys.toSorted());
    for (const detail of [undefined, false])
      expect(discover(desk.board, { project: 'shop', ...(detail === false && { detail }) })).toEqual(plain);
  });

  /** Everybody who is there stays so, whatever time passes. */
  async function beatAll(): Promise<void> {
    await desk.store.write((tx) => {
      for (const row of tx.sessions.open())
        tx.sessions.renew(row.connection_id, desk.clock.nowMs() + 400_000, undefined);
    });
  }

  it('[SES-058] lists no card of a connection that expired, was closed or replaced', async () => {
    await attach(desk, 'expired', { lease_ms: 10 });
    const closed = await attach(desk, 'closed');
    await disconnect(desk.board, closed.connection_id, 'socket_closed');
    await attach(desk, 'replaced');
    await attach(desk, 'replaced');
    await desk.clock.advance(10);
    expect(cards().map(({ session_id, generation }) => [session_id, generation])).toEqual([['replaced', 2]]);
  });

  it('[SES-159] shows the summary that a heartbeat brought, until an empty one clears it', async () => {
    const { connection_id, generation } = await attach(desk, 's1');
    const shown = async (summary?: string) => {
      ok(await beat(connection_id, generation, summary));
      return cards()[0]?.work_summary;
    };
    expect([await shown(), await shown('reading'), await shown(), await shown('')]).toEqual([
      null,
      'reading',
      'reading',
      null,
    ]);
  });
});
