// Progress of a task: what makes what obsolete, and what never does.

import { beforeEach, describe, expect, it } from 'vitest';
import { listenerBell } from '../../src/hosts/claude-code/bell.ts';
import { acknowledge } from '../../src/mailbox/acknowledge.ts';
import { cancelTask } from '../../src/mailbox/cancel.ts';
import { history } from '../../src/mailbox/history.ts';
import { intake } from '../../src/mailbox/intake.ts';
import { receive } from '../../src/mailbox/receive.ts';
import { reconcile } from '../../src/mailbox/ring.ts';
import { send } from '../../src/mailbox/send.ts';
import { sendFields } from '../../src/protocol/requests.ts';
import {
  alice,
  attach,
  letter,
  ok,
  openScene,
  post,
  posted,
  read,
  type Scene,
  sessionCaller,
} from './desk.ts';
import { failingStore } from './failing.ts';
import { fault } from './rung.ts';

let desk: Scene;
beforeEach(async () => {
  desk = await openScene();
});

const bob = sessionCaller('s1');
/** Payloads of what waits for Bob. */
const waiting = () => ok(receive(desk, { project: 'shop' }, bob)).messages.map(({ payload }) => payload);
const of = (payload: string, over = {}) => posted(desk, { payload, task_id: 't', ...over });
const update = (payload: string, over = {}) => of(payload, { status: 'update', ...over });
const conversation = async () => ok(await history(desk, { project: 'shop', peer: 'alice' }, bob)).messages;

/** Sends `payload` at noon plus `seconds`, whatever came before. */
async function at(seconds: number, payload: string, over = {}): Promise<void> {
  desk.clock.jump(seconds * 1_000);
  await update(payload, over);
  desk.clock.jump(-seconds * 1_000);
}

describe('an update', () => {
  it('[MSG-126, INB-092, INB-093] supersedes older ones: by time, at equal times by arrival, and also when it comes late', async () => {
    await update('u1');
    await update('u2');
    expect(waiting()).toEqual(['u2']);
    const [u1] = await conversation();
    expect(u1).toMatchObject({ payload: 'u1', superseded_by: (await conversation())[1]?.message_id });
    for (const [seconds, payload] of [
      [0, 't0'],
      [2, 't2'],
      [1, 't1'],
    ] as const)
      await at(seconds, payload, { task_id: 'times' });
    expect(waiting()).toEqual(['u2', 't2']);
  });

  it('[INB-092] of a sender that is a session supersedes the older ones of that session', async () => {
    for (const payload of ['s1', 's2', 's3']) {
      const hinted = read(sendFields, letter({ payload, task_id: 't', status: 'update' }));
      ok(await send(desk, hinted, sessionCaller('a9')));
    }
    expect(waiting()).toEqual(['s3']);
    const rows = desk.rows('SELECT message_id, superseded_by FROM delivery ORDER BY seq');
    const [, second, third] = rows.map(({ message_id }) => message_id);
    expect(rows.map(({ superseded_by }) => superseded_by)).toEqual([second, third, null]);
  });

  it.each(['result', 'failed', 'canceled'] as const)(
    '[MSG-127, INB-094, INB-099] is superseded by the end of its task (%s), before and after, whatever its time',
    async (status) => {
      await update('before');
      await of('the end', { status });
      expect(waiting()).toEqual(['the end']);
      await at(5, 'five seconds later');
      await at(-5, 'five seconds earlier');
      expect(waiting()).toEqual(['the end']);
      const messages = ok(receive(desk, { project: 'shop' }, bob)).messages.map(({ receipt }) => receipt);
      ok(await acknowledge(desk, { project: 'shop', messages }, bob));
      await at(5, 'after the end was taken in');
      expect(waiting()).toEqual([]);
      await update('new work', { task_id: 't-2' });
      expect(waiting()).toEqual(['new work']);
    },
  );

  it('[MSG-128, INB-095, INB-097] leaves alone another sender, session, task and inbox, and what has no task', async () => {
    await update('another sender', { sender: 'carol' });
    await update('another task', { task_id: 'other' });
    await update('another spelling', { task_id: 'T' });
    await update('another case', { sender: 'Alice' });
    await posted(desk, { payload: 'no task, one', status: 'update' });
    await posted(desk, { payload: 'no task, two', status: 'update' });
    const hinted = read(sendFields, letter({ payload: 'another session', task_id: 't', status: 'update' }));
    ok(await send(desk, hinted, sessionCaller('a9')));
    await update('another inbox', { recipient: 'carol' });
    await update('meant for one session', { intended_session: 's1' });
    await update('u');
    await of('the end', { status: 'result' });
    expect(new Set(waiting())).toEqual(
      new Set([
        'another sender',
        'another task',
        'another spelling',
        'another case',
        'another session',
        'no task, one',
        'no task, two',
        'meant for one session',
        'the end',
      ]),
    );
    expect(ok(receive(desk, { project: 'shop', recipient: 'carol' }, alice)).messages).toHaveLength(1);
  });

  it('[MSG-130, INB-096] never supersedes a question, a failure, a result, a cancellation or what has no status, nor do these each other', async () => {
    const kinds = {
      question: 'needs_input',
      plain: undefined,
      failure: 'failed',
      result: 'result',
      cancellation: 'canceled',
    };
    const all: string[] = [];
    for (const round of ['first', 'second'])
      for (const [kind, status] of Object.entries(kinds)) {
        await of(`${round} ${kind}`, status === undefined ? {} : { status });
        all.push(`${round} ${kind}`);
      }
    await update('late');
    expect(waiting()).toEqual(all);
    expect(desk.rows('SELECT count(*) AS n FROM delivery WHERE superseded_by IS NULL')).toEqual([
      { n: all.length },
    ]);
  });

  it('[MSG-131, INB-100] stays in history, marked, and is announced no more', async () => {
    const u1 = await update('u1');
    const u2 = await update('u2');
    const shown = await conversation();
    expect(shown.map(({ payload, superseded_by }) => [payload, superseded_by])).toEqual([
      ['u1', u2.message_id],
      ['u2', undefined],
    ]);
    expect(desk.store.read((tx) => tx.messages.byId(u1.message_id)?.waiting)).toBe(false);
    await posted(desk);
    await reconcile(desk, { caller: bob, project: 'shop' }, listenerBell(desk), fault);
    const [notice] = desk.rows('SELECT text FROM listener_row');
    expect(notice?.text).toContain('1 message waits and 1 progress for this session');
    const key = { sender: 'local', msg_id: u1.message_id };
    expect(ok(await acknowledge(desk, { project: 'shop', messages: [key] }, bob)).acknowledged).toBe(1);
    expect((await conversation())[0]).toMatchObject({ superseded_by: u2.message_id });
  });

  it('ends the waiting of what it supersedes in one transaction with itself', async () => {
    const u1 = await update('u1');
    const { database, store } = failingStore(desk);
    const statements = 7;
    for (let nth = 1; nth <= statements; nth += 1) {
      database.left = nth;
      const request = read(sendFields, letter({ task_id: 't', status: 'update' }));
      const fault = await send({ ...desk, store }, request, alice).catch((error: unknown) => error);
      if (database.left > 0) break;
      expect(fault).toBeInstanceOf(Error);
      expect(waiting()).toEqual(['u1']);
      expect(desk.rows('SELECT superseded_by FROM delivery')).toEqual([{ superseded_by: null }]);
    }
    expect(desk.store.read((tx) => tx.messages.byId(u1.message_id)?.superseded_by)).toBeDefined();
  });
});

describe('the progress marker of a session', () => {
  const carol = sessionCaller('c1', 'carol');
  const marker = () => desk.store.read((tx) => tx.tasks.marker('c1'));
  const say = async (over: object, caller = carol) =>
    ok(await send(desk, read(sendFields, letter({ sender: 'carol', task_id: 'job', ...over })), caller));

  it('[INB-151] is set by a task without status, restarted by an update, and cleared by the end of the task from either side', async () => {
    await attach(desk, 'c1', { principal_id: 'carol' });
    expect(marker()).toBeUndefined();
    await say({});
    const { since_ms } = marker() ?? { since_ms: 0 };
    expect(marker()).toMatchObject({ task_id: 'job', project: 'shop' });
    await desk.clock.advance(60_000);
    await say({ status: 'needs_input' });
    expect(marker()?.since_ms).toBe(since_ms);
    await say({ status: 'update' });
    expect(marker()?.since_ms).toBe(since_ms + 60_000);
    await say({ task_id: 'newer' });
    expect(marker()?.task_id).toBe('newer');
    await desk.clock.advance(1_000);
    await say({ status: 'result' });
    expect(marker()).toMatchObject({ task_id: 'newer', since_ms: since_ms + 61_000 });
    await say({ task_id: 'newer', status: 'failed' });
    expect(marker()).toBeUndefined();
    for (const inbound of [{ recipient: 'carol' }, { recipient: 'c1', target_kind: 'session' }]) {
      await say({});
      await post(desk, { task_id: 'other', status: 'result', ...inbound });
      await post(desk, { task_id: 'job', status: 'update', ...inbound });
      expect(marker()?.task_id).toBe('job');
      for (const status of ['result', 'failed', 'canceled']) {
        await say({});
        await post(desk, { task_id: 'job', status, ...inbound });
        expect(marker()).toBeUndefined();
        await say({});
        await say({ status });
        expect(marker()).toBeUndefined();
      }
    }
    await say({});
    ok(await cancelTask(desk, { project: 'shop', recipient: 'bob', task_id: 'job' }, carol));
    expect(marker()).toBeUndefined();
  });

  it('[INB-151] ends by no end in another project, nor by one to a principal of its session\u2019s name', async () => {
    await attach(desk, 'c1', { principal_id: 'carol' });
    await say({});
    await post(desk, { task_id: 'job', status: 'result', recipient: 'carol', project: 'bank' });
    await post(desk, { task_id: 'job', status: 'result', recipient: 'c1' });
    expect(marker()?.task_id).toBe('job');
  });

  it('[INB-151] keeps no send from succeeding where it cannot be written', async () => {
    const { database, store } = failingStore(desk);
    database.left = 6;
    const request = read(sendFields, letter({ task_id: 'job' }));
    const sent = ok(await send({ ...desk, store }, request, carol));
    expect(database.left).toBeLessThanOrEqual(0);
    expect(desk.store.read((tx) => tx.messages.byId(sent.message_id))).toBeDefined();
    expect(marker()).toBeUndefined();
  });
});

describe('cancelling a task', () => {
  it('[INB-152] is one message with the status, however often it is asked', async () => {
    const carol = sessionCaller('c1', 'carol');
    await attach(desk, 'c1', { principal_id: 'carol' });
    const request = { project: 'shop', recipient: 'bob', task_id: 't' };
    const first = ok(await cancelTask(desk, request, carol));
    expect(first).toMatchObject({ sender: 'carol', recipient: 'bob', task_id: 't', status: 'canceled' });
    expect(waiting()).toEqual(['canceled']);
    expect(ok(await cancelTask(desk, request, carol)).message_id).toBe(first.message_id);
    const taken = { project: 'shop', recipient: 'bob', message_id: first.message_id };
    ok(await intake(desk, { ...taken, idempotency_key: 'k', state: 'ingested' }, bob));
    expect(ok(await cancelTask(desk, request, carol)).message_id).toBe(first.message_id);
    expect(waiting()).toEqual([]);
    const other = ok(await cancelTask(desk, { ...request, reason: 'not needed' }, carol));
    expect(other.message_id).not.toBe(first.message_id);
    expect(waiting()).toEqual(['not needed']);
    const more = [
      { task_id: 'u' },
      { recipient: 'dave' },
      { recipient: 's1', target_kind: 'session' as const },
    ];
    const ids = new Set([first.message_id]);
    desk.onNotify = () => ({ delivered: true, quieted: 'taken_in' });
    for (const over of more) {
      const sent = ok(await cancelTask(desk, { ...request, ...over }, carol));
      expect(sent).toMatchObject({ sender: 'carol', target_kind: 'principal', status: 'canceled', ...over });
      expect(ok(await cancelTask(desk, { ...request, ...over }, carol)).message_id).toBe(sent.message_id);
      ids.add(sent.message_id);
    }
    expect(ids.size).toBe(4);
    expect(desk.counts().message).toBe(5);
  });
});
