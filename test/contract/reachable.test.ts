// A session that cannot be rung says so, and is heard again as soon as it can.

import { beforeEach, describe, expect, it } from 'vitest';
import { listenerBell } from '../../src/hosts/claude-code/bell.ts';
import { watchReach } from '../../src/mailbox/reachable.ts';
import type { Bell, BellState } from '../../src/ports/bell.ts';
import { disconnect } from '../../src/sessions/disconnect.ts';
import { dispatch } from '../../src/sessions/dispatch.ts';
import { locksIn } from '../../src/store/lock.ts';
import { settle } from './clock.ts';
import { atEnd, attach, openScene, post, posted, refused, type Scene } from './desk.ts';
import { fault } from './rung.ts';

let desk: Scene;
let turnAtMs: number;
beforeEach(async () => {
  desk = await openScene();
  desk.onNotify = ({ project, delivery_id }) => dispatch(desk.board, project, delivery_id);
  turnAtMs = desk.clock.elapsedMs();
});

const minuteMs = 60_000;
/** The session's process: it registers as its bell can ring. */
async function session(bell: Bell): Promise<boolean[]> {
  const changes: boolean[] = [];
  let current: string | undefined;
  const register = async (deaf: boolean): Promise<void> => {
    if (current !== undefined) await disconnect(desk.board, current, 'adapter_disconnect');
    const without = { bell: 'none', adapter_kind: 'poll' } as const;
    current = (await attach(desk, 's1', { lease_ms: 300_000, ...(deaf && without) })).connection_id;
  };
  await register(false);
  const renewed = (): void => {
    desk.clock.after(minuteMs, () => {
      const live = desk.store.read((tx) => tx.sessions.live('shop', ['s1'], desk.clock.nowMs()));
      if (live !== undefined)
        void desk.store.write((tx) =>
          tx.sessions.renew(live.connection_id, desk.clock.nowMs() + 300_000, undefined),
        );
      renewed();
    });
  };
  renewed();
  atEnd(
    watchReach({
      ...desk,
      bell,
      turnAtMs: () => turnAtMs,
      onChange: (deaf) => {
        changes.push(deaf);
        void register(deaf);
      },
      onFault: fault,
    }),
  );
  return changes;
}
const presence = async () => (await posted(desk, { status: 'update' })).recipient_presence;
const toSession = { target_kind: 'session', recipient: 's1' };

describe('a session with a listener', () => {
  it('[HOST-015] is deaf once its listener is gone for 10 min without a turn; its next Stop makes it live', async () => {
    const locks = locksIn(desk.directory);
    const isArmed = (): boolean => {
      const free = locks.tryTake('listener-s1');
      free?.release();
      return free === undefined;
    };
    let listener = locks.tryTake('listener-s1');
    const changes = await session(listenerBell(desk, isArmed));
    await desk.clock.advance(30 * minuteMs);
    expect([changes, await presence()]).toEqual([[], 'live']);
    listener?.release();
    await desk.clock.advance(9 * minuteMs);
    expect([changes, await presence()]).toEqual([[], 'live']);
    turnAtMs = desk.clock.elapsedMs();
    await desk.clock.advance(9.9 * minuteMs);
    expect([changes, await presence()]).toEqual([[], 'live']);
    await desk.clock.advance(0.6 * minuteMs);
    expect([changes, await presence()]).toEqual([[true], 'deaf']);
    expect(refused(await post(desk, toSession))).toMatchObject({
      code: 'recipient_unavailable',
      details: { reason: 'no_bell' },
    });
    listener = locks.tryTake('listener-s1');
    atEnd(() => listener?.release());
    await desk.clock.advance(2_000);
    expect([changes, await presence()]).toEqual([[true, false], 'live']);
    expect((await posted(desk, toSession)).native_delivery).toBeDefined();
  });

  it('[HOST-015] whose bell refuses is deaf at the next look, and live once it does not', async () => {
    let state: BellState = { state: 'busy' };
    const changes = await session({ ...listenerBell(desk), state: () => state });
    await desk.clock.advance(20 * minuteMs);
    expect(changes).toEqual([]);
    state = { state: 'refused', reason: 'no such thread' };
    await desk.clock.advance(30_000);
    expect([changes, await presence()]).toEqual([[true], 'deaf']);
    state = { state: 'ready' };
    desk.wake.touch();
    await settle();
    expect([changes, await presence()]).toEqual([[true, false], 'live']);
  });
});
