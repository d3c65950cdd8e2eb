// What holds for every road that rings a session of Claude Code: bounded prints, one session under its ids, and mail that
// only one session may have.

import { beforeEach, describe, expect, it } from 'vitest';
import { intake } from '../../src/mailbox/intake.ts';
import { commitBatch, heldBackMs, nextBatch } from '../../src/mailbox/listen.ts';
import { midTurn, progressNudge } from '../../src/mailbox/mid-turn.ts';
import { notifierLockName } from '../../src/mailbox/notifier.ts';
import { receive } from '../../src/mailbox/receive.ts';
import { waitingFor } from '../../src/mailbox/remind.ts';
import { ringForHandOff } from '../../src/mailbox/ring.ts';
import { stopGate } from '../../src/mailbox/stop-gate.ts';
import { progressIntervalMs } from '../../src/platform/environment.ts';
import { ledgersIn } from '../../src/platform/ledgers.ts';
import { isRefusal } from '../../src/protocol/errors.ts';
import { reminderLines } from '../../src/protocol/reminder.ts';
import { dispatch } from '../../src/sessions/dispatch.ts';
import { attach, ok, post, posted, type Scene, sessionCaller } from './desk.ts';
import { fault, openRung, type Rung } from './rung.ts';

let scene: Rung;
let desk: Scene;
beforeEach(async () => {
  scene = await openRung();
  desk = scene.desk;
});

const lines = (session: string, recipient = 'bob'): string[] =>
  reminderLines(
    recipient,
    desk.store.read((tx) => waitingFor(tx, { recipient, session }, desk.clock.nowMs())),
  );

describe('a listener', () => {
  it('[HOST-103] that prints over and over is held back at its sixth print within 60 s, and prints once the minute is over', async () => {
    await attach(desk, 's1');
    const printed: number[] = [];
    const held: number[] = [];
    for (let nth = 0; nth < 10; nth += 1) {
      ok(await post(desk, { recipient: 's1', target_kind: 'session' }));
      const batch = nextBatch(desk, 's1');
      if (batch !== undefined) {
        const leftMs = heldBackMs(desk, batch);
        if (leftMs === 0) {
          await commitBatch(desk, batch);
          printed.push(nth);
        } else held.push(leftMs);
      }
      await desk.clock.advance(1_000);
    }
    expect(printed).toEqual([0, 1, 2, 3, 4]);
    expect(held).toEqual([55_000, 54_000, 53_000, 52_000, 51_000]);
    await desk.clock.advance(50_000);
    const batch = nextBatch(desk, 's1');
    expect(batch?.text).toContain('10 messages wait');
    expect(heldBackMs(desk, batch as NonNullable<typeof batch>)).toBe(0);
    desk.clock.jump(-3_600_000);
    expect(heldBackMs(desk, batch as NonNullable<typeof batch>)).toBe(0);
  });

  it('[HOST-103] rings for mail that nobody ever reads on the schedule alone', async () => {
    await attach(desk, 's1');
    scene.startNotifier();
    await posted(desk);
    for (let second = 0; second < 600; second += 1) {
      const batch = nextBatch(desk, 's1');
      if (batch !== undefined && heldBackMs(desk, batch) === 0) await commitBatch(desk, batch);
      await desk.clock.advance(1_000);
    }
    expect(scene.rungAt()).toEqual([0, 30, 90, 210, 450]);
  });

  it('[INB-145] prints for every id of its session, and a /clear within a reservation makes no second ring', async () => {
    await attach(desk, 's1');
    scene.startNotifier();
    await posted(desk);
    await desk.clock.advance(5_000);
    await desk.store.write((tx) => tx.identity.link('s2', 's1'));
    expect(await midTurn(desk, { caller: sessionCaller('s2'), project: 'shop' })).toEqual([]);
    for (const id of ['s1', 's2']) ok(await post(desk, { recipient: id, target_kind: 'session' }));
    const [first, second] = [nextBatch(desk, 's1'), nextBatch(desk, 's2')];
    expect(first).toEqual(second);
    expect(first?.text).toContain('3 messages wait');
    await commitBatch(desk, first as NonNullable<typeof first>);
    expect(nextBatch(desk, 's2')).toBeUndefined();
    await posted(desk);
    await desk.clock.advance(29_000);
    expect(scene.rungAt()).toEqual([0, 5, 5]);
    expect(['s1', 's2'].map((id) => notifierLockName(desk, id))).toEqual(['notifier-s1', 'notifier-s1']);
    expect(desk.rows('SELECT DISTINCT session_root FROM reservation')).toEqual([{ session_root: 's1' }]);
  });

  it('[HOST-124] lines of a prompt or start repeat whatever is reserved, and reserve nothing', async () => {
    await attach(desk, 's1');
    await posted(desk);
    const before = desk.counts();
    expect(scene.rungAt()).toEqual([0]);
    for (let nth = 0; nth < 3; nth += 1) expect(lines('s1')).toHaveLength(1);
    expect(desk.counts()).toEqual(before);
  });
});

describe('mail of one session', () => {
  it('[MSG-043] that failed is not attempted when the session comes, only told: by hooks, inbox and its own schedule', async () => {
    desk.onNotify = ({ project, delivery_id }) => dispatch(desk.board, project, delivery_id);
    expect(isRefusal(await post(desk, { recipient: 's1', target_kind: 'session' }))).toBe(true);
    await attach(desk, 's1');
    scene.startNotifier();
    await desk.clock.advance(1_000);
    expect(desk.handed).toEqual([]);
    expect(desk.rows('SELECT * FROM attempt')).toEqual([]);
    expect(desk.rows('SELECT * FROM host_accept')).toEqual([]);
    expect(lines('s1')).toHaveLength(1);
    expect(ok(receive(desk, { project: 'shop' }, sessionCaller('s1'))).messages).toHaveLength(1);
    expect(scene.rungAt()).toEqual([0.5]);
  });

  it('[MSG-056] meant for a session is handed to no sibling: to it alone, and kept where it is away', async () => {
    await attach(desk, 'a');
    await attach(desk, 'b');
    await posted(desk, { intended_session: 'a' });
    expect(desk.handed.map(({ session_id }) => session_id)).toEqual(['a']);
    desk.handed.length = 0;
    await posted(desk, { intended_session: 'c' });
    expect(desk.handed).toEqual([]);
    expect(desk.rows('SELECT count(*) AS n FROM attempt')).toEqual([{ n: 1 }]);
    expect(lines('b')).toEqual([]);
    expect(lines('c')).toHaveLength(1);
  });
});

describe('three clears', () => {
  it('[SES-051] leave one session, whichever of its ids is named: reminders, gate, inbox, intake, dispatch, fallback, delivery state', async () => {
    await attach(desk, 'i1');
    desk.host = async (handOff) => {
      const own = { caller: sessionCaller('i1'), project: 'shop' };
      const outcome = await ringForHandOff(desk, own, scene.bell, handOff, fault);
      return outcome.outcome === 'accepted' ? outcome : { outcome: 'timeout' };
    };
    for (const [later, former] of [
      ['i2', 'i1'],
      ['i3', 'i2'],
      ['i4', 'i3'],
    ] as const)
      await desk.store.write((tx) => tx.identity.link(later, former));
    // A link that goes round changes nothing.
    await desk.store.write((tx) => tx.identity.link('i1', 'i4'));
    const ends = ['i1', 'i4'] as const;
    const gate = async (session: string, directory: string) =>
      stopGate({
        store: desk.store,
        clock: desk.clock,
        ledgers: ledgersIn(`${desk.directory}/${directory}`),
        addressee: { recipient: 'bob', session },
        session,
        active: false,
        begin: async () => {},
        cover: async () => async () => {},
        print: () => {},
      });
    for (const id of ends) {
      const other = id === 'i1' ? 'i4' : 'i1';
      desk.handed.length = 0;
      const sent = ok(await post(desk, { recipient: id, target_kind: 'session' }));
      expect(desk.handed.map(({ session_id }) => session_id)).toEqual(['i1']);
      expect(lines(other).join()).toContain(`waiting for the live session "${id}"`);
      expect((await gate(other, `gate-${id}`)).reason).toBe('blocked for 1');
      expect((await gate(id, `gate-${id}`)).reason).toBe('nothing new');
      const inbox = receive(desk, { project: 'shop' }, sessionCaller(other));
      expect(ok(inbox).messages.map(({ message_id }) => message_id)).toEqual([sent.message_id]);
      expect(sent.delivery_state).toBe('inbox_queued');
      const meant = ok(await post(desk, { intended_session: id }));
      const take = { project: 'shop', idempotency_key: 'k', state: 'ingested' as const };
      for (const [message_id, recipient] of [
        [sent.message_id, id],
        [meant.message_id, 'bob'],
      ] as const)
        ok(await intake(desk, { ...take, recipient, message_id }, sessionCaller(other)));
      expect(lines(other)).toEqual([]);
    }
    desk.host = () => ({ outcome: 'rejected', failure_code: 'adapter_rejected' });
    for (const id of ends) {
      const fell = ok(
        await post(desk, { recipient: id, target_kind: 'session', fallback_to_principal: true }),
      );
      expect(fell.fallback).toMatchObject({ reason: 'adapter_rejected', intended_session_connected: true });
    }
  });
});

describe('the progress nudge', () => {
  const s1 = sessionCaller('s1');
  const nudge = (lastMs?: number) => progressNudge(desk, 's1', { intervalMs: 60_000, lastMs });

  it('[HOST-047] asks once the last update and the last nudge are a minute old, and no more when the task has ended', async () => {
    expect(nudge()).toBeUndefined();
    ok(await post(desk, { task_id: 'the "task"', payload: 'begin' }, s1));
    await desk.clock.advance(59_999);
    expect(nudge()).toBeUndefined();
    await desk.clock.advance(1);
    expect(nudge()).toBe(
      'Postbell: nobody has heard of task "the \\"task\\"" for 60 s: if it goes on, say so with the tool message (action "send", status "update", task_id "the \\"task\\"").',
    );
    const askedMs = desk.clock.nowMs();
    await desk.clock.advance(30_000);
    expect(nudge(askedMs)).toBeUndefined();
    ok(await post(desk, { task_id: 'the "task"', status: 'update' }, s1));
    await desk.clock.advance(59_000);
    expect(nudge(askedMs)).toBeUndefined();
    await desk.clock.advance(1_000);
    expect(nudge(askedMs)).toContain('for 60 s');
    ok(await post(desk, { task_id: 'the "task"', status: 'result' }, s1));
    await desk.clock.advance(600_000);
    expect(nudge()).toBeUndefined();
  });

  it('[HOST-047] is off at 0, below it, and where the interval is no number; 60 s where none is set', () => {
    const of = (value?: string) =>
      progressIntervalMs(value === undefined ? {} : { POSTBELL_PROGRESS_INTERVAL: value });
    expect([undefined, '', '60', '5', '0', '-1', 'abc', '1.5', '1e3', ' '].map(of)).toEqual([
      60_000,
      60_000,
      60_000,
      5_000,
      undefined,
      undefined,
      undefined,
      undefined,
      undefined,
      60_000,
    ]);
  });
});
