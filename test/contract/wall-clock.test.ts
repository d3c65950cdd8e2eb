// Somebody sets the wall clock by a day: mail that waits still waits, bells ring, sessions are live or register anew, and
// nobody is held back for a day.

import { beforeEach, describe, expect, it } from 'vitest';
import { history } from '../../src/mailbox/history.ts';
import { poll } from '../../src/mailbox/poll.ts';
import { receive } from '../../src/mailbox/receive.ts';
import { disconnect, expireLeases } from '../../src/sessions/disconnect.ts';
import { discover } from '../../src/sessions/discover.ts';
import { heartbeat } from '../../src/sessions/heartbeat.ts';
import { alice, attach, ok, openScene, post, posted, refused, type Scene, sessionCaller } from './desk.ts';
import { openRung, ringing } from './rung.ts';

const dayMs = 86_400_000;
const inbox = { project: 'shop', recipient: 'bob' };

let desk: Scene;
beforeEach(async () => {
  desk = await openScene();
});

describe.each([-dayMs, dayMs])('a wall clock that is set by %d ms', (jump) => {
  it('[INB-065] ends no waiting, turns no order around, and loses no event of a cursor', async () => {
    const before = await posted(desk, { payload: 'before' });
    const seen = ok(await poll(desk, inbox));
    desk.clock.jump(jump);
    const after = await posted(desk, { payload: 'after' });
    const waiting = ok(receive(desk, inbox, alice)).messages.map(({ message_id }) => message_id);
    expect(waiting).toEqual([before.message_id, after.message_id]);
    const cursor = seen.next_cursor as string;
    const { events } = ok(await poll(desk, { ...inbox, cursor }));
    expect(events.map(({ message_id }) => message_id)).toEqual([after.message_id]);
    expect(ok(await history(desk, { ...inbox, peer: 'alice' }, alice)).messages).toHaveLength(2);
  });

  it('keeps a new message from its bell for a second at most', async () => {
    for (const live of [true, false]) {
      const rung = await openRung();
      if (live) await attach(rung.desk, 's1');
      rung.desk.onNotify = () => ({ delivered: false, reason: 'not_live' });
      rung.startNotifier();
      if (live) await posted(rung.desk);
      rung.desk.clock.jump(jump);
      if (!live) await posted(rung.desk);
      await rung.desk.clock.advance(1_000);
      expect([live, rung.rungAt()]).toEqual([live, [expect.any(Number)]]);
      const { messages } = ok(receive(rung.desk, { project: 'shop' }, ringing.caller));
      await rung.done(...messages.map(({ message_id }) => message_id));
    }
  });

  it('leaves a session live, or lets it register anew at once', async () => {
    const { replaced: _, ...key } = await attach(desk, 's1');
    desk.clock.jump(jump);
    const isLive = () => discover(desk, { project: 'shop' }).length === 1;
    expect(isLive()).toBe(jump < 0);
    expect(await expireLeases(desk.board)).toHaveLength(jump < 0 ? 0 : 1);
    const beat = await heartbeat(desk.board, key);
    if (jump < 0) ok(beat);
    else expect(refused(beat).code).toBe('stale_generation');
    const live = jump < 0 ? key : await attach(desk, 's1');
    await desk.clock.advance(59_999);
    expect(isLive()).toBe(true);
    await desk.clock.advance(1);
    expect(isLive()).toBe(false);
    expect(await expireLeases(desk.board)).toEqual([live.connection_id]);
  });

  it('ends a connection whose process ends, whatever its lease says', async () => {
    const { connection_id } = await attach(desk, 's1');
    desk.clock.jump(jump);
    await disconnect(desk, connection_id, 'socket_closed');
    expect(discover(desk, { project: 'shop' })).toEqual([]);
    expect((await posted(desk, { intended_session: 's1' })).recipient_presence).toBe('gone');
  });

  it('holds back no answers of a pair for longer than ten minutes', async () => {
    const a1 = sessionCaller('a1', 'alice');
    const { message_id: reply_to } = await posted(desk, { sender: 'bob', recipient: 'alice' });
    const again = () => post(desk, { payload: 'again', reply_to }, a1);
    for (let nth = 1; nth <= 30; nth += 1) ok(await again());
    expect(refused(await again()).code).toBe('rate_limited');
    desk.clock.jump(jump);
    ok(await again());
  });
});
