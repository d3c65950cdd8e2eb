// Queue release: what the router asks about a notice in a host's queue, when, and the one fact that it leaves.

import { beforeEach, describe, expect, it } from 'vitest';
import { intake } from '../../src/mailbox/intake.ts';
import { poll } from '../../src/mailbox/poll.ts';
import { receipts } from '../../src/mailbox/receipts.ts';
import { receive } from '../../src/mailbox/receive.ts';
import { Fault } from '../../src/protocol/errors.ts';
import { renderNotice } from '../../src/protocol/notices.ts';
import { recordHostPlace } from '../../src/sessions/release.ts';
import { noonMs, settle } from './clock.ts';
import { letter, ok, openScene, post, refused, type Scene, sessionCaller } from './desk.ts';
import { type Exchange, openExchange } from './exchange.ts';
import { type Asking, codexThread, openAsking, queued, thread } from './queue.ts';

let desk: Scene;
let router: Exchange;
let asking: Asking;
beforeEach(async () => {
  desk = await openScene();
  router = openExchange(desk);
  desk.onNotify = ({ delivery_id }) => router.notify(delivery_id);
  asking = openAsking(desk);
});

const rows = () => desk.rows('SELECT * FROM queue_release');
const activations = () =>
  desk
    .rows("SELECT value, actor, detail FROM receipt WHERE receipt_kind = 'host_activation'")
    .map(({ detail, ...row }) => ({ ...row, detail: JSON.parse(String(detail)) as object }));
const woken = (codex_queue: string) => ({
  value: 'woken',
  actor: 'postbell-router',
  detail: { codex_queue },
});
const concluded = (value: string, reason: string) => ({
  value,
  actor: 'postbell-router',
  detail: { reason },
});
const takeIn = async (message_id: string) =>
  ok(
    await intake(
      desk,
      { project: 'shop', recipient: thread, message_id, idempotency_key: 'k', state: 'fetched' } as never,
      sessionCaller(thread, 'codex-thread'),
    ),
  );
/** Lets the window pass, with a beat of the session's process every minute, which changes nothing here. */
const minutes = (count: number) => desk.clock.advance(count * 60_000);

describe('the questions about a queued notice', () => {
  it('[HOST-178] come every 20 s for 10 min, 30 of them, about exactly that submission', async () => {
    await queued(desk, router);
    const acceptedMs = desk.clock.nowMs();
    await minutes(11);
    const times = asking.questions.map(({ atMs }) => atMs - acceptedMs);
    expect(times).toEqual(Array.from({ length: 30 }, (_, n) => (n + 1) * 20_000));
    expect(asking.questions[0]).toMatchObject({ thread_id: thread, submission_id: `sub-of-${thread}` });
    expect(rows()).toEqual([]);
  });

  it('are asked once for a notice that rings for several; each of those leaves its own fact', async () => {
    const first = await queued(desk, router);
    await queued(desk, router, { receipt: { thread_id: thread, submission_id: `sub-of-${thread}` } });
    await queued(desk, router);
    await takeIn(first.message_id);
    asking.answer = () => 'started';
    await desk.clock.advance(25_000);
    expect(asking.questions).toHaveLength(1);
    expect(activations()).toEqual([woken('started'), woken('started')]);
    expect(rows()).toEqual([]);
  });

  it('[HOST-181] end with the intake and leave no record; else one is left', async () => {
    const { message_id } = await queued(desk, router);
    await desk.clock.advance(50_000);
    const before = desk.counts();
    await takeIn(message_id);
    await minutes(11);
    expect(asking.questions).toHaveLength(2);
    expect(activations()).toEqual([]);
    expect(desk.counts()).toEqual({
      ...before,
      receipt: (before.receipt ?? 0) + 1,
      event: (before.event ?? 0) + 1,
      queue_release: 0,
    });
    await queued(desk, router);
    await minutes(11);
    expect(activations()).toHaveLength(1);
    expect(desk.counts().queue_release).toBe(0);
  });

  it('leave no record where the message was taken in while the host was asked', async () => {
    const { message_id } = await queued(desk, router);
    asking.answer = async () => {
      await takeIn(message_id);
      return 'started' as const;
    };
    await minutes(11);
    expect(asking.questions).toHaveLength(1);
    expect([activations(), rows()]).toEqual([[], []]);
  });

  it('are asked of no other bell', async () => {
    const host = await router.join('s1');
    const sent = post(desk, letter({ target_kind: 'session', recipient: 's1' }));
    await settle();
    const receipt = { thread_id: thread, submission_id: 'x' };
    ok((await host.accept(host.frames.at(-1), { receipt })) as never);
    ok(await sent);
    const managed = await router.join('s2', { ...codexThread, adapter_kind: 'codex-app-server' });
    const second = post(desk, letter({ target_kind: 'session', recipient: 's2' }));
    await settle();
    ok((await managed.accept(managed.frames.at(-1), { receipt })) as never);
    ok(await second);
    expect(rows()).toEqual([]);
  });

  it('begin with an acceptance that came late, too', async () => {
    const host = await router.join(thread, { ...codexThread });
    const sent = post(desk, letter({ target_kind: 'session', recipient: thread }));
    await desk.clock.advance(10_000);
    expect(refused(await sent).details?.reason).toBe('host_outcome_timeout');
    await host.beat();
    const receipt = { thread_id: thread, submission_id: 'late' };
    expect(await host.accept(host.frames.at(-1), { receipt })).toEqual({ correlated: true });
    await desk.clock.advance(20_000);
    expect(asking.questions).toMatchObject([{ submission_id: 'late', atMs: noonMs + 30_000 }]);
  });

  it('name the place that the session\u2019s process wrote', async () => {
    const places: unknown[] = [];
    await asking.close();
    openAsking(desk, desk.store, async ({ place }) => {
      places.push(place);
      return 'busy';
    });
    await queued(desk, router);
    await desk.clock.advance(20_000);
    for (const home of ['/home/b/.codex', null]) {
      await recordHostPlace(desk, thread, { program: '/opt/codex', home });
      const before = desk.rows('SELECT * FROM host_place');
      await recordHostPlace(desk, thread, { program: '/opt/codex', home });
      expect(desk.rows('SELECT * FROM host_place')).toEqual(before);
      await desk.clock.advance(20_000);
    }
    const found = { program: '/opt/codex', home: '/home/b/.codex' };
    expect(places).toEqual([undefined, found, { ...found, home: null }]);
  });

  it('are one a thread at a time, and four at once', async () => {
    const threads = ['t1', 't2', 't3', 't4', 't5'];
    const submission = { receipt: { thread_id: 't1', submission_id: 'another' } };
    await queued(desk, router, { session: 't1', ...submission });
    for (const session of threads) await queued(desk, router, { session });
    const answered: (() => void)[] = [];
    asking.answer = () => new Promise((resolve) => answered.push(() => resolve('started')));
    await desk.clock.advance(20_000);
    const asked = () => asking.questions.map(({ thread_id }) => thread_id);
    expect(asked()).toEqual(['t1', 't2', 't3', 't4']);
    await desk.clock.advance(10_000);
    expect(asked()).toHaveLength(4);
    answered[0]?.();
    await desk.clock.advance(2_000);
    expect(asked().slice(4)).toEqual(['t1']);
    for (const answer of answered) answer();
    await desk.clock.advance(2_000);
    expect(asked().slice(5)).toEqual(['t5']);
  });

  it('[HOST-186] go on after a restart of the router, with the time that is left', async () => {
    const { message_id } = await queued(desk, router);
    const acceptedMs = desk.clock.nowMs();
    await minutes(4);
    expect(asking.questions).toHaveLength(12);
    await asking.close();
    await desk.clock.advance(30_000);
    expect(asking.questions).toHaveLength(12);
    const next = openAsking(desk, await desk.secondStore());
    await minutes(7);
    const times = next.questions.map(({ atMs }) => atMs - acceptedMs);
    // What fell due meanwhile is asked at once, and once.
    expect(times).toEqual([270_000, ...Array.from({ length: 17 }, (_, n) => 280_000 + n * 20_000)]);
    expect(times.at(-1)).toBe(600_000);
    expect(activations()).toEqual([concluded('failed', 'busy')]);
    expect(ok(receive(desk, { project: 'shop' }, sessionCaller(thread))).messages).toMatchObject([
      { message_id },
    ]);
  });

  it('that are under way when the router ends are left to the next one', async () => {
    await queued(desk, router);
    asking.answer = (_, abort) =>
      new Promise((_resolve, reject) => abort.addEventListener('abort', () => reject(new Error('ended'))));
    await desk.clock.advance(20_000);
    const before = rows();
    expect(before).toMatchObject([{ checks: 0 }]);
    await asking.close();
    expect([rows(), activations(), asking.faults]).toEqual([before, [], []]);
    const next = openAsking(desk);
    next.answer = () => 'started';
    await desk.clock.advance(20_000);
    expect(activations()).toEqual([woken('started')]);
  });

  it('are not lost by a clock that somebody sets', async () => {
    await queued(desk, router);
    await desk.clock.advance(20_000);
    desk.clock.jump(-3_600_000);
    await minutes(11);
    expect(asking.questions.length).toBeGreaterThanOrEqual(29);
    expect(asking.questions.length).toBeLessThanOrEqual(30);
    expect(activations()).toEqual([concluded('failed', 'busy')]);
    await queued(desk, router);
    desk.clock.jump(3_600_000);
    asking.answer = () => 'taken';
    await desk.clock.advance(2_000);
    expect(activations()).toEqual([concluded('failed', 'busy'), woken('empty')]);
  });
});

describe('what is left of them', () => {
  it('[HOST-182] is woken where it was started, or taken before, at once; and that is no intake', async () => {
    for (const [answer, queue] of [
      ['started', 'started'],
      ['taken', 'empty'],
    ] as const) {
      const before = desk.counts();
      asking.answer = () => answer;
      const { message_id } = await queued(desk, router);
      await desk.clock.advance(20_000);
      expect(activations().at(-1)).toEqual(woken(queue));
      const after = desk.counts();
      expect((after.receipt ?? 0) - (before.receipt ?? 0)).toBe(1);
      const scope = { project: 'shop', recipient: thread, message_id };
      expect(ok(receipts(desk, scope)).receipts.map(({ receipt_kind }) => receipt_kind)).not.toContain(
        'intake',
      );
      expect(
        ok(receive(desk, { project: 'shop' }, sessionCaller(thread))).messages.map((one) => one.message_id),
      ).toContain(message_id);
      await minutes(11);
      expect(desk.counts().receipt).toBe(after.receipt);
    }
    expect(asking.questions).toHaveLength(2);
  });

  it('[HOST-183] is that a person must resume it, where other input stayed for the whole window', async () => {
    await queued(desk, router);
    asking.answer = () => 'foreign_input';
    await desk.clock.advance(599_000);
    expect(activations()).toEqual([]);
    await desk.clock.advance(20_000);
    expect(asking.questions).toHaveLength(30);
    expect(activations()).toEqual([concluded('manual_resume_required', 'foreign_input')]);
  });

  it('[HOST-184] is a failure with its reason: busy throughout, no answer or a negative one, no submission id', async () => {
    const cases = [
      [() => 'busy', 'busy'],
      [() => 'no_answer', 'timeout'],
      [() => 'refused', 'rejected'],
      [() => Promise.reject(new Fault('adapter_error', 'broken')), 'failed'],
    ] as const;
    for (const [answer, reason] of cases) {
      asking.answer = answer as never;
      await queued(desk, router);
      await minutes(11);
      expect(activations().at(-1)).toEqual(concluded('failed', reason));
    }
    expect(asking.questions).toHaveLength(cases.length * 30);
    for (const receipt of [{ thread_id: thread }, { submission_id: '' }, { submission_id: 7 }, 'text']) {
      await queued(desk, router, { receipt: receipt as never });
      await desk.clock.advance(20_000);
      expect(activations().at(-1)).toEqual(concluded('failed', 'no_submission_id'));
    }
    // Then nothing is started.
    expect(asking.questions).toHaveLength(cases.length * 30);
    expect(activations()).toHaveLength(8);
  });

  it('is that nothing there can be asked, where no app-server answered at the end', async () => {
    await queued(desk, router);
    asking.answer = () => 'no_daemon';
    await desk.clock.advance(599_000);
    expect(activations()).toEqual([]);
    await desk.clock.advance(20_000);
    expect(activations()).toEqual([concluded('unsupported', 'no_daemon')]);
  });

  it('is what the last question found', async () => {
    await queued(desk, router);
    asking.answer = () => (asking.questions.length < 30 ? 'no_daemon' : 'foreign_input');
    await minutes(11);
    expect(activations()).toEqual([concluded('manual_resume_required', 'foreign_input')]);
  });

  it('[MSG-101] is one fact a delivery at most, of the router, shown with the others and told to the sender', async () => {
    const { message_id, delivery_id } = await queued(desk, router);
    const other = openAsking(desk, await desk.secondStore());
    const events = ok(await poll(desk, { project: 'shop', receipts: true, sender: 'alice' })).events;
    expect(events).toEqual([]);
    asking.answer = () => new Promise((resolve) => desk.clock.after(1_000, () => resolve('started')));
    other.answer = () => 'taken';
    await desk.clock.advance(22_000);
    expect([asking.questions.length, other.questions.length]).toEqual([1, 1]);
    expect(activations()).toHaveLength(1);
    const shown = ok(receipts(desk, { project: 'shop', recipient: thread, message_id })).receipts;
    expect(shown.map(({ receipt_kind }) => receipt_kind)).toEqual([
      'attempt',
      'host_accept',
      'host_activation',
    ]);
    expect(shown[2]).toEqual({
      receipt_id: expect.stringMatching(/^rcp_/),
      receipt_kind: 'host_activation',
      value: 'woken',
      source: 'receipt',
      actor: 'postbell-router',
      idempotency_key: 'postbell-router',
      detail: expect.stringMatching(/^\{"codex_queue":"(started|empty)"\}$/),
      recorded_at: new Date(noonMs + 20_000).toISOString(),
    });
    const told = ok(await poll(desk, { project: 'shop', receipts: true, sender: 'alice' })).events;
    expect(told).toMatchObject([{ message_id, receipt_kind: 'host_activation', value: 'woken' }]);
    const before = desk.counts();
    await desk.store.write((tx) =>
      tx.releases.open({
        delivery_id,
        session_id: thread,
        thread_id: thread,
        submission_id: 'again',
        next_check_ms: desk.clock.nowMs(),
        ends_ms: desk.clock.nowMs(),
      }),
    );
    await minutes(1);
    expect(desk.counts()).toEqual(before);
    expect(ok(receive(desk, { project: 'shop' }, sessionCaller(thread))).messages).toHaveLength(1);
  });
});

describe('an item of a queue', () => {
  it('[HOST-180] is ours by its submission id, or as a notice of this store', async () => {
    await queued(desk, router);
    const notification_id = String(desk.rows('SELECT notification_id FROM reservation')[0]?.notification_id);
    await desk.clock.advance(20_000);
    const [{ isOurs }] = asking.questions as [Asking['questions'][0]];
    const notice = renderNotice({ notification_id, unread: 1, progress: 0 });
    const elsewhere = renderNotice({ notification_id: '0123456789ab', unread: 1, progress: 0 });
    const says = (text: string) => isOurs({ id: 'any', text });
    expect(isOurs({ id: `sub-of-${thread}`, text: 'whatever' })).toBe(true);
    expect(says(notice)).toBe(true);
    const foreign = ['', 'fix the parser', elsewhere, `please\n${notice}`, notification_id, ` ${notice}`];
    for (const text of foreign) expect([text, says(text)]).toEqual([text, false]);
    expect(isOurs({ id: 'sub-of-another', text: '' })).toBe(false);
  });
});
