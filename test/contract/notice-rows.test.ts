// What a notice is and what becomes of its result: fresh ids, fenced results, states that say no more than is known.

import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { beforeEach, describe, expect, it } from 'vitest';
import { listenerBell } from '../../src/hosts/claude-code/bell.ts';
import { ack } from '../../src/mailbox/ack.ts';
import { acknowledge } from '../../src/mailbox/acknowledge.ts';
import { history } from '../../src/mailbox/history.ts';
import { intake } from '../../src/mailbox/intake.ts';
import { commitBatch, nextBatch } from '../../src/mailbox/listen.ts';
import { notifierLockName, runNotifier } from '../../src/mailbox/notifier.ts';
import { receipts } from '../../src/mailbox/receipts.ts';
import { reconcile } from '../../src/mailbox/ring.ts';
import type { Store } from '../../src/ports/store.ts';
import { Fault } from '../../src/protocol/errors.ts';
import { renderNotice, renewalText } from '../../src/protocol/notices.ts';
import type { HandOffState } from '../../src/protocol/states.ts';
import { locksIn } from '../../src/store/lock.ts';
import { acp, fixture, listener } from '../conformance/adapters.ts';
import { type Belled, fault, openBelled, ringing, toSession } from '../conformance/scene.ts';
import { root } from '../process/postbell.ts';
import { noonMs } from './clock.ts';
import { atEnd, attach, letter, ok, openScene, post, posted, refused } from './desk.ts';

const dayMs = 86_400_000;

let s: Belled;
const advance = (ms: number): Promise<void> => s.desk.clock.advance(ms);
const reservations = () => s.desk.rows('SELECT * FROM reservation ORDER BY seq');
const covers = () => s.desk.rows('SELECT * FROM reservation_cover ORDER BY delivery_id, notification_id');

describe('a notice', () => {
  beforeEach(async () => {
    s = await openBelled(listener);
  });

  it('[INB-028] has a fresh random id of lower-case hex, and nothing ever needs it', async () => {
    await s.attach();
    s.startNotifier();
    const ids = new Set<string>();
    for (let n = 1; n <= 40; n += 1) {
      const { message_id } = await posted(s.desk);
      await advance(1_000);
      expect(s.rings()).toHaveLength(n);
      expect(s.waiting()).toEqual([message_id]);
      await s.done(message_id);
      expect([s.waiting(), s.stateOf(message_id)]).toEqual([[], 'receiver_acknowledged']);
    }
    for (const { notification_id } of reservations()) ids.add(String(notification_id));
    expect(ids.size).toBe(40);
    for (const id of ids) expect(id).toMatch(/^([0-9a-f]{2}){4,}$/);
    // No byte of them is counted up: of 256 values, 40 draws meet many.
    for (const at of [0, 2, 4, 6])
      expect(new Set([...ids].map((id) => id.slice(at, at + 2))).size).toBeGreaterThan(20);
  });

  it('[INB-029] is never caused by progress, and mentions it as a count', async () => {
    await s.attach();
    s.startNotifier();
    for (const task_id of ['job-one', 'job-two'])
      await posted(s.desk, { payload: 'half of it', status: 'update', sender: 'worker', task_id });
    await advance(600_000);
    expect([s.rings(), reservations()]).toEqual([[], []]);
    await posted(s.desk, { status: 'needs_input' });
    await advance(1_000);
    const texts = s.rings().map(({ text }) => text);
    expect(texts).toEqual([expect.stringContaining('1 message waits and 2 progress')]);
    expect(texts[0]).not.toMatch(/half of it|worker|job-|update/);
  });

  it('[INB-035] is rung at the start of a notifier for what fell due without one, then by its timer, without a touch', async () => {
    const untouched = { ...s.desk, wake: { touch: () => {}, watch: () => () => {} } };
    await posted(untouched);
    await advance(10_000);
    const kill = s.startNotifier();
    await advance(500);
    expect(s.rungAt()).toEqual([10]);
    await advance(29_500);
    await advance(500);
    expect(s.rungAt()).toEqual([10, 40]);
    kill();
    await advance(100_000);
    expect(s.rungAt()).toEqual([10, 40]);
    s.startNotifier();
    await advance(0);
    expect(s.rungAt()).toEqual([10, 40, 140.5]);
  });

  it('[INB-038] is held back by no reading without its id, nor by consuming through history', async () => {
    await s.attach();
    s.startNotifier();
    const stale = () => String(reservations()[0]?.notification_id);
    for (const idOf of [() => undefined, () => 'ab12cd34', stale]) {
      const { message_id } = await posted(s.desk);
      await advance(1_000);
      const id = idOf();
      const rung = s.rings().length;
      expect(s.waiting(id)).toEqual([message_id]);
      const all = { project: 'shop', peer: 'alice', consume: true };
      expect(ok(await history(s.desk, all, ringing.caller))).toMatchObject({ consumed: 1 });
      expect([s.waiting(id), s.stateOf(message_id)]).toEqual([[], 'receiver_acknowledged']);
      const next = await posted(s.desk);
      await advance(1_000);
      expect(s.rings()).toHaveLength(rung + 1);
      await s.done(next.message_id);
    }
  });

  it('[INB-042] that comes twice after acknowledging brings no body back', async () => {
    s.startNotifier();
    const { message_id } = await posted(s.desk);
    await advance(1_000);
    const text = s.rings()[0]?.text as string;
    expect(s.read).toEqual([message_id]);
    await s.done(message_id);
    s.read.splice(0);
    for (let n = 0; n < 2; n += 1) s.host.take(text);
    expect(s.host.seen.slice(-2)).toEqual([text, text]);
    expect(s.read).toEqual([]);
  });

  it.each<HandOffState>(['preparing', 'inbox_queued', 'notification_sent', 'host_queued', 'delivery_failed'])(
    '[INB-035, INB-036] that was left as %s is recovered when its reservation ends',
    async (state) => {
      const { delivery_id, message_id } = await posted(s.desk);
      await s.desk.store.write((tx) => {
        const times = { rung_at_ms: noonMs, expires_at_ms: noonMs + 30_000 };
        tx.notices.open({ notification_id: 'ab12cd34', session_root: 's1', state, step: 0, ...times });
        tx.notices.cover('ab12cd34', [delivery_id]);
      });
      s.startNotifier();
      await advance(29_999);
      expect(s.rungAt()).toEqual([]);
      await advance(1);
      expect(s.rungAt()).toEqual([30]);
      expect(reservations()[1]).toMatchObject({ state: 'inbox_queued', step: 1 });
      expect(s.stateOf(message_id)).toBe('inbox_queued');
    },
  );

  it('[INB-037] of an earlier format, without times, counts as expired; the next gap is 60 s', async () => {
    const { delivery_id } = await posted(s.desk);
    await s.desk.store.write((tx) => {
      const fields = { state: 'inbox_queued', step: 0, rung_at_ms: 0, expires_at_ms: 0 } as const;
      tx.notices.open({ notification_id: 'old', session_root: 's1', ...fields });
      tx.notices.cover('old', [delivery_id]);
    });
    s.startNotifier();
    await advance(1_000);
    expect(s.rungAt()).toEqual([0]);
    expect(reservations()[1]?.notification_id).not.toBe('old');
    await advance(58_999);
    expect(s.rungAt()).toEqual([0]);
    await advance(1);
    expect(s.rungAt()).toEqual([0, 60]);
  });

  it('[INB-133] is appended though a listener waits and a notifier holds its lock', async () => {
    const locks = locksIn(s.desk.directory);
    const held = [locks.tryTake('listener-s1'), locks.tryTake(notifierLockName(s.desk, 's1'))];
    for (const lock of held) atEnd(() => lock?.release());
    expect(held.every((lock) => lock?.held() === true)).toBe(true);
    await s.attach();
    expect((await posted(s.desk, toSession)).native_delivery).toBeDefined();
    expect(s.desk.counts().listener_row).toBe(1);
  });

  it('[INB-141] is kept after it was printed until its mail is consumed and 24 h have passed', async () => {
    const desk = await openScene();
    const bell = listenerBell(desk);
    const rows = () => desk.rows('SELECT seq FROM listener_row ORDER BY seq').map(({ seq }) => seq);
    /** One letter, rung for and printed. */
    const printed = async (): Promise<string> => {
      const { message_id } = await posted(desk);
      await reconcile(desk, ringing, bell, fault);
      const batch = nextBatch(desk, 's1');
      if (batch?.text === undefined) throw new Error('nothing was printed');
      await commitBatch(desk, batch);
      return message_id;
    };
    const done = async (...ids: string[]) => {
      const messages = ids.map((msg_id) => ({ sender: 'local', msg_id }));
      ok(await acknowledge(desk, { project: 'shop', messages }, ringing.caller));
    };
    await done(await printed());
    desk.clock.jump(dayMs - 1);
    await done(await printed());
    expect(rows()).toEqual([1, 2]);
    desk.clock.jump(2);
    const unread = await printed();
    expect(rows()).toEqual([2, 3]);
    desk.clock.jump(2 * dayMs);
    const second = await printed();
    expect(rows()).toEqual([3, 4]);
    await done(unread, second);
    desk.clock.jump(300_000);
    await printed();
    expect(rows()).toEqual([4, 5]);
  });

  it('[INB-058] is made for no session without a bell: mail is stored, and both kinds of sender are told', async () => {
    await attach(s.desk, 's9', { principal_id: 'poller', bell: 'none', adapter_kind: 'poll' });
    const sent = await posted(s.desk, { recipient: 'poller' });
    expect(sent.recipient_presence).toBe('deaf');
    const exact = letter({ target_kind: 'session', recipient: 's9' });
    expect(refused(await post(s.desk, exact))).toMatchObject({
      code: 'recipient_unavailable',
      details: { reason: 'no_bell' },
    });
    expect(s.desk.counts()).toMatchObject({
      message: 2,
      delivery: 2,
      reservation: 0,
      attempt: 0,
      listener_row: 0,
    });
  });
});

describe('a result of a ring', () => {
  beforeEach(async () => {
    s = await openBelled(fixture('codex-queue'));
  });

  it('[INB-045, MSG-134] for an older notice changes neither the current one nor any record', async () => {
    const { answer } = s.fallSilent();
    s.startNotifier();
    const { message_id } = await posted(s.desk);
    await advance(29_000);
    s.host.script = 'refuse for good';
    await advance(2_000);
    expect(reservations()).toMatchObject([{ state: 'delivery_failed' }, { state: 'delivery_failed' }]);
    const before = [reservations(), covers(), await s.failures(), s.stateOf(message_id)];
    answer();
    await advance(100);
    expect(s.host.seen).toHaveLength(1);
    expect([reservations(), covers(), await s.failures(), s.stateOf(message_id)]).toEqual(before);
  });

  it('[INB-046, INB-106, MSG-134] moves no record that was acknowledged meanwhile', async () => {
    const { answer } = s.fallSilent();
    const { message_id } = await posted(s.desk);
    const acked = { project: 'shop', recipient: 'bob', message_id: (await posted(s.desk)).message_id };
    s.startNotifier();
    await advance(1_000);
    await s.done(message_id);
    ok(await ack(s.desk, { ...acked, idempotency_key: 'k' }, ringing.caller));
    const facts = () => s.desk.rows('SELECT * FROM receipt');
    const before = facts();
    answer();
    await advance(100);
    expect(reservations()).toMatchObject([{ state: 'host_queued' }]);
    expect([message_id, acked.message_id].map((id) => s.stateOf(id))).toEqual(
      Array(2).fill('receiver_acknowledged'),
    );
    expect([s.waiting(), facts()]).toEqual([[acked.message_id], before]);
    await advance(60_000);
    expect(s.stateOf(acked.message_id)).toBe('receiver_acknowledged');
  });

  it('[INB-046, INB-104] moves no record that was superseded meanwhile', async () => {
    const { answer } = s.fallSilent();
    s.startNotifier();
    const { message_id } = await posted(s.desk);
    await advance(1_000);
    const other = new BetterSqlite3(s.desk.path);
    other.prepare(`UPDATE delivery SET superseded_by = 'msg_x', open = 0`).run();
    other.close();
    const record = () => [s.stateOf(message_id), s.waiting(), s.desk.rows('SELECT * FROM delivery')];
    const before = record();
    expect(before.slice(0, 2)).toEqual(['receiver_stored', []]);
    answer();
    await advance(100);
    expect(reservations()).toMatchObject([{ state: 'host_queued' }]);
    expect(record()).toEqual(before);
  });

  it.each(['store_unwritable', 'store_full', 'store_busy'] as const)(
    '[INB-049] that cannot be written (%s) is written again; the host is rung once',
    async (code) => {
      let broken = false;
      const store: Store = {
        ...s.desk.store,
        write: (work) => (broken ? Promise.reject(new Fault(code, 'no')) : s.desk.store.write(work)),
      };
      const call = s.host.call.bind(s.host);
      s.host.call = (text) => {
        broken = true;
        return call(text);
      };
      const faults: unknown[] = [];
      const { stop } = runNotifier(
        { ...s.desk, store },
        locksIn(s.desk.directory),
        ringing,
        s.bell,
        (error) => faults.push(error),
      );
      atEnd(stop);
      const { message_id } = await posted(s.desk);
      await advance(25_000);
      expect([s.rings().length, s.stateOf(message_id)]).toEqual([1, 'receiver_stored']);
      expect(faults.length).toBeGreaterThan(10);
      broken = false;
      await advance(1_000);
      expect([s.rings().length, s.stateOf(message_id)]).toEqual([1, 'host_queued']);
    },
  );

  it('[INB-104, MSG-135] is the state of what it covered and what still waits, of nothing else', async () => {
    const first = await posted(s.desk);
    const second = await posted(s.desk);
    const taken = await posted(s.desk);
    s.startNotifier();
    await advance(1_000);
    const later = await posted(s.desk);
    const states = () => [first, second, taken, later].map(({ message_id }) => s.stateOf(message_id));
    expect(states()).toEqual(['host_queued', 'host_queued', 'host_queued', 'receiver_stored']);
    await s.done(second.message_id);
    const scope = { project: 'shop', recipient: 'bob', message_id: taken.message_id };
    const fetched = { ...scope, state: 'fetched', idempotency_key: 'k' } as const;
    ok(await intake(s.desk, fetched, ringing.caller));
    expect(states()).toEqual(['host_queued', 'receiver_acknowledged', 'receiver_stored', 'receiver_stored']);
    await advance(30_000);
    expect(states()).toEqual(['host_queued', 'receiver_acknowledged', 'receiver_stored', 'host_queued']);
  });

  it('[INB-057] is not waited for while an ACP agent is in a turn: the notice stays in preparing, and is accepted after it', async () => {
    s = await openBelled(acp);
    s.startNotifier();
    s.host.startTurn();
    const { message_id } = await posted(s.desk);
    await advance(20_000);
    expect([s.rings().length, reservations().map(({ state }) => state)]).toEqual([0, ['preparing']]);
    s.host.endTurn();
    await advance(1_000);
    expect([s.rings().length, s.stateOf(message_id)]).toEqual([1, 'host_queued']);
  });

  it('that is a throw is a defect, not an outcome', async () => {
    const bell = { ...listenerBell(s.desk), ring: () => Promise.reject(new Error('a defect')) };
    await posted(s.desk);
    await expect(reconcile(s.desk, ringing, bell, fault)).rejects.toThrow('a defect');
  });
});

describe('what is said of an acceptance', () => {
  const literals = (file: string): string[] =>
    [
      ...readFileSync(file, 'utf8')
        .replace(/^\s*(\/\/|\*|\/\*).*$/gm, '')
        .matchAll(/'([^'\n]*)'|`([^`]*)`|"([^"\n]*)"/g),
    ].map((found) => found.slice(1).join(''));
  const sources = (folder: string): string[] =>
    readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => path.join(root, folder, name));

  it('[INB-108, HOST-002] is never that anything was read, seen or done', async () => {
    const files = [
      ...sources('src/hosts'),
      ...sources('src/mailbox'),
      path.join(root, 'src/protocol/states.ts'),
    ];
    const stating = files
      .flatMap(literals)
      .filter((text) => /accept|inbox_queued|notification_sent|host_queued|hand|rung/i.test(text));
    expect(stating).toEqual(expect.arrayContaining(['inbox_queued', 'notification_sent', 'host_queued']));
    // Also inside a name: `accepted_and_seen`.
    for (const text of stating)
      expect(text).not.toMatch(/(?<![a-z])(read|seen|saw|done|understood|processed)(?![a-z])/i);
    const notices = [renderNotice({ notification_id: 'ab12', unread: 1, progress: 0 }), renewalText];
    for (const text of notices)
      expect(text).not.toMatch(/\b(was|were|been|has) (read|seen|done|delivered)\b/i);
    s = await openBelled(listener);
    await s.attach();
    const { native_delivery, message_id } = await posted(s.desk, toSession);
    const known = ok(receipts(s.desk, { project: 'shop', recipient: 's1', message_id })).receipts;
    expect(known.map(({ receipt_kind }) => receipt_kind)).toEqual(['attempt', 'host_accept']);
    expect(native_delivery?.status).toBe('native_accepted');
    expect(JSON.stringify(native_delivery)).not.toMatch(/(?<![a-z])(read|seen|saw|done)(?![a-z])/i);
    const readme = readFileSync(path.join(root, 'README.md'), 'utf8');
    expect(ok(readme)).toMatch(/`host_accept`[^|]*\|[^|]*\| that the agent saw it/);
  });
});
