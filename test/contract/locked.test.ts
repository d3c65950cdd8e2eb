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
    expect(await dispatch(board, 'shop', delivery_id)).toMatchObject({ delivered: true });
    expect(desk.handed).toHaveLength(1);
    expect(desk.rows('SELECT state FROM attempt')).toEqual([{ state: 'adapter_returned' }]);
    expect(desk.counts().host_accept).toBe(1);
  });

  it('and the end of a connection likewise', async () => {
    const { connection_id } = await attach(desk, 's1');
    await disconnect({ ...desk.board, store: lockedAfter(0, 3) }, connection_id, 'socket_closed');
    expect(desk.rows('SELECT disconnect_reason FROM connection')).toEqual([
      { disconnect_reason: 'socket_closed' },
    ]);
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
