// A store that is locked, and a wall clock that somebody sets: what already happened is recorded, and waits end in time.

import BetterSqlite3 from 'better-sqlite3';
import { beforeEach, describe, expect, it } from 'vitest';
import { poll } from '../../src/mailbox/poll.ts';
import { send } from '../../src/mailbox/send.ts';
import { Fault } from '../../src/protocol/errors.ts';
import { sendFields } from '../../src/protocol/requests.ts';
import { disconnect } from '../../src/sessions/disconnect.ts';
import { dispatch } from '../../src/sessions/dispatch.ts';
import { alice, atEnd, attach, letter, openScene, posted, read, type Scene } from './desk.ts';

const dayMs = 86_400_000;

let desk: Scene;
beforeEach(async () => {
  desk = await openScene();
});

/** The same store, of which writes fail as locked `times` times after the first `passing`. */
function lockedAfter(passing: number, times: number): Scene['store'] {
  let call = 0;
  return {
    ...desk.store,
    write: (work) => {
      call += 1;
      const locked = call > passing && call <= passing + times;
      return locked ? Promise.reject(new Fault('store_busy', 'locked')) : desk.store.write(work);
    },
  };
}

describe('what a host answered', () => {
  it('is recorded when the store is free again, and the host is asked once', async () => {
    await attach(desk, 's1');
    const { delivery_id } = await posted(desk);
    const board = { ...desk.board, store: lockedAfter(1, 3) };
    const told = dispatch(board, 'shop', delivery_id);
    await desk.clock.advance(1_000);
    expect(await told).toMatchObject({ delivered: true });
    expect(desk.handed).toHaveLength(1);
    expect(desk.rows('SELECT state FROM attempt')).toEqual([{ state: 'adapter_returned' }]);
    expect(desk.counts().host_accept).toBe(1);
  });

  it('and the end of a connection likewise', async () => {
    const { connection_id } = await attach(desk, 's1');
    const ended = disconnect({ ...desk.board, store: lockedAfter(0, 3) }, connection_id, 'socket_closed');
    await desk.clock.advance(1_000);
    await ended;
    expect(desk.rows('SELECT disconnect_reason FROM connection')).toEqual([
      { disconnect_reason: 'socket_closed' },
    ]);
  });
});

describe('a store that is full or cannot be written', () => {
  /** Writes fail from the second on, as long as the scene says. */
  function failing(code: 'store_full' | 'store_unwritable') {
    const state = { failing: true, calls: 0 };
    const store: Scene['store'] = {
      ...desk.store,
      write: (work) => {
        state.calls += 1;
        return state.failing && state.calls > 1
          ? Promise.reject(new Fault(code, 'no'))
          : desk.store.write(work);
      },
    };
    return { state, board: { ...desk.board, store } };
  }

  it.each(['store_full', 'store_unwritable'] as const)(
    'has its attempt finished when it can be written again, within two minutes: %s',
    async (code) => {
      await attach(desk, 's1', { lease_ms: 300_000 });
      const { delivery_id } = await posted(desk);
      const { state, board } = failing(code);
      const told = dispatch(board, 'shop', delivery_id);
      await desk.clock.advance(119_000);
      expect(desk.rows('SELECT state FROM attempt')).toEqual([{ state: 'started' }]);
      expect(state.calls).toBeGreaterThan(100);
      state.failing = false;
      await desk.clock.advance(1_000);
      expect(await told).toMatchObject({ delivered: true });
      expect(desk.handed).toHaveLength(1);
      expect(desk.rows('SELECT state FROM attempt')).toEqual([{ state: 'adapter_returned' }]);
      expect(desk.counts().host_accept).toBe(1);
    },
  );

  it('is given up after two minutes, and no later', async () => {
    await attach(desk, 's1', { lease_ms: 300_000 });
    const { delivery_id } = await posted(desk);
    const { state, board } = failing('store_full');
    const told = dispatch(board, 'shop', delivery_id).catch((error: Fault) => error.code);
    await desk.clock.advance(125_000);
    expect(await told).toBe('store_full');
    const { calls } = state;
    await desk.clock.advance(125_000);
    expect(state.calls).toBe(calls);
  });

  it('refuses at once what has not happened yet', async () => {
    await attach(desk, 's1');
    const { delivery_id } = await posted(desk);
    const { state, board } = failing('store_full');
    state.calls = 1;
    await expect(dispatch(board, 'shop', delivery_id)).rejects.toMatchObject({ code: 'store_full' });
    expect(state.calls).toBe(2);
  });
});

describe.each([-dayMs, dayMs])('a wall clock that is set by %d ms', (jump) => {
  it('neither lengthens nor cuts a poll\u2019s wait', async () => {
    let ended = false;
    const waiting = poll(desk, { project: 'shop', recipient: 'bob', wait_ms: 4_000 }).then((answer) => {
      ended = true;
      return answer;
    });
    await desk.clock.advance(1_000);
    desk.clock.jump(jump);
    await desk.clock.advance(2_900);
    expect(ended).toBe(false);
    await desk.clock.advance(200);
    expect(await waiting).toMatchObject({ events: [] });
  });

  it('does not keep a writer waiting for the lock beyond its 5 s', async () => {
    const holder = new BetterSqlite3(desk.path);
    atEnd(() => holder.close());
    holder.exec('BEGIN IMMEDIATE');
    const outcome = send(desk, read(sendFields, letter()), alice).catch((error: Fault) => error.code);
    await desk.clock.advance(1_000);
    desk.clock.jump(jump);
    await desk.clock.advance(4_500);
    expect(await outcome).toBe('store_busy');
  });
});
