// A session that cannot be rung says so, and is heard again as soon as it can.

import { beforeEach, describe, expect, it } from 'vitest';
import { listenerBell } from '../../src/hosts/claude-code/bell.ts';
import { watchReach } from '../../src/mailbox/reachable.ts';
import type { Bell, BellState } from '../../src/ports/bell.ts';
import { limits } from '../../src/protocol/limits.ts';
import type { CardDetail } from '../../src/protocol/session.ts';
import { disconnect } from '../../src/sessions/disconnect.ts';
import { discover } from '../../src/sessions/discover.ts';
import { dispatch } from '../../src/sessions/dispatch.ts';
import type { HostOutcome } from '../../src/sessions/switchboard.ts';
import { inspectStore } from '../../src/store/inspection.ts';
import { locksIn } from '../../src/store/lock.ts';
import type { DoctorFacts } from '../../src/surfaces/doctor/facts.ts';
import { listener } from '../../src/surfaces/doctor/reached.ts';
import { settle } from './clock.ts';
import { accepted, atEnd, attach, openScene, post, posted, refused, type Scene } from './desk.ts';
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
const noBell = expect.stringContaining('no bell, so that nothing rings and mail waits for a look: "s1"');
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

describe('[HOST-014] what a sender is told of a session', () => {
  const bellIn = (state: BellState): Bell => ({ ...listenerBell(desk), state: () => state });
  const unarmed: BellState = { state: 'unarmed' };
  /** How `discover --detail` and doctor show s1. */
  const shown = async () => {
    const [card] = discover(desk.board, { project: 'shop', detail: true }) as CardDetail[];
    const value = await inspectStore({ ...desk, path: desk.path });
    if (value === undefined) throw new Error('there is a store');
    const facts = { store: { state: 'found', value }, integrations: { state: 'found', value: [] } } as const;
    const { level, text } = listener({ nowMs: desk.clock.nowMs(), ...facts } as unknown as DoctorFacts);
    return { state: card?.bell_state.state, reason: card?.bell_state.reason, level, text };
  };

  it.each<[string, BellState, number]>([
    ['ready', { state: 'ready' }, 0],
    ['ready for long', { state: 'ready' }, 60],
    ['busy', { state: 'busy' }, 0],
    ['busy for long', { state: 'busy' }, 60],
    ['unarmed', unarmed, 0],
    ['unarmed for less than 10 min', unarmed, 9.4],
  ])('%s: live', async (_, state, minutes) => {
    await session(bellIn(state));
    await desk.clock.advance(minutes * minuteMs);
    expect(await presence()).toBe('live');
    expect(await shown()).toMatchObject({ state: 'live' });
  });

  it.each<[string, BellState, number]>([
    ['unarmed for 10 min, no turn running', unarmed, 10.6],
    ['refused', { state: 'refused', reason: 'no such thread' }, 0.6],
  ])('%s: deaf, with the reason in discover and doctor', async (_, state, minutes) => {
    await session(bellIn(state));
    await desk.clock.advance(minutes * minuteMs);
    expect(await presence()).toBe('deaf');
    expect(await shown()).toEqual({ state: 'deaf', reason: 'no_bell', level: 'warn', text: noBell });
  });

  it('unarmed for 10 min while a turn runs: live', async () => {
    await session(bellIn(unarmed));
    await desk.clock.advance(9 * minuteMs);
    turnAtMs = desk.clock.elapsedMs();
    await desk.clock.advance(9 * minuteMs);
    expect(await presence()).toBe('live');
  });

  it('without a bell: deaf, with the reason in discover and doctor', async () => {
    await attach(desk, 's1', { bell: 'none', adapter_kind: 'poll' });
    expect(await presence()).toBe('deaf');
    expect(await shown()).toEqual({ state: 'deaf', reason: 'no_bell', level: 'warn', text: noBell });
  });

  it('whose lease ran out: away', async () => {
    await attach(desk, 's1');
    await desk.clock.advance(61_000);
    expect(await presence()).toBe('away');
  });

  it('that ended: gone', async () => {
    const { connection_id } = await attach(desk, 's1');
    await disconnect(desk.board, connection_id, 'adapter_disconnect');
    expect(await presence()).toBe('gone');
  });

  it('that has as many unanswered hand-offs as it takes: full', async () => {
    await attach(desk, 's1');
    const answers: ((outcome: HostOutcome) => void)[] = [];
    desk.host = () => new Promise((resolve) => answers.push(resolve));
    const sends: Promise<unknown>[] = [];
    for (let nth = 0; nth < limits.handOffsPendingMax; nth += 1) {
      expect(await presence()).toBe('live');
      sends.push(post(desk, toSession));
      for (let turn = 0; answers.length <= nth && turn < 100; turn += 1) await desk.clock.advance(0);
    }
    expect([answers.length, await presence()]).toEqual([64, 'full']);
    answers[0]?.(accepted);
    await sends[0];
    expect(await presence()).toBe('live');
    for (const answer of answers) answer(accepted);
    await Promise.all(sends);
  });
});
