// Notices that a host did not take: saved, listed, rung again, and never in the way of the schedule.

import { beforeEach, describe, expect, it } from 'vitest';
import { type FailedEntry, failed } from '../../src/mailbox/failed.ts';
import { fetchMessage } from '../../src/mailbox/fetch.ts';
import { history } from '../../src/mailbox/history.ts';
import { runNotifier } from '../../src/mailbox/notifier.ts';
import { receive } from '../../src/mailbox/receive.ts';
import { reconcile, ringAgain } from '../../src/mailbox/ring.ts';
import type { FailureRow } from '../../src/ports/ringing.ts';
import { readFields } from '../../src/protocol/fields.ts';
import { failedFields } from '../../src/protocol/requests.ts';
import { locksIn } from '../../src/store/lock.ts';
import { fixture } from '../conformance/adapters.ts';
import { type Belled, openBelled, ringing, toSession } from '../conformance/scene.ts';
import { alice, atEnd, attach, ok, post, posted, read, refused, sessionCaller } from './desk.ts';
import { failingStore } from './failing.ts';

let s: Belled;
beforeEach(async () => {
  s = await openBelled(fixture('codex-queue'));
});

const advance = (ms: number): Promise<void> => s.desk.clock.advance(ms);
const again = () => ringAgain(s.desk, ringing, s.bell, (error) => s.faults.push(error));
const ask = (input: object, ring?: Parameters<typeof failed>[3], caller = ringing.caller) =>
  failed(s.desk, read(failedFields, input), caller, ring);
const list = async (): Promise<FailedEntry[]> => {
  const answer = ok(await ask({ action: 'list' }));
  return 'failed' in answer ? answer.failed : [];
};
const other = (n: number, over: Partial<FailureRow> = {}): FailureRow => ({
  id: `fdl_${n}`,
  session_root: 's1',
  kind: 'message',
  notification_id: null,
  message_id: `msg_${n}`,
  sender: 'alice',
  reason: 'adapter_rejected',
  text: `the text of ${n}`,
  recorded_at: '2026-03-01T11:00:00.000Z',
  ...over,
});
const saveOthers = (count: number, from = 1) =>
  s.desk.store.write((tx) => {
    for (let n = from; n < from + count; n += 1) tx.failures.save(other(n));
  });
/** One round of the notifier whose ring fails for good. */
async function failOnce(): Promise<string> {
  s.host.script = 'refuse for good';
  const { message_id } = await posted(s.desk);
  await reconcile(s.desk, ringing, s.bell, (error) => s.faults.push(error));
  return message_id;
}

describe('failed deliveries', () => {
  it('[INB-110] are listed, read, rung again and discarded; anything else is refused', async () => {
    await failOnce();
    const [{ id } = { id: '' }] = await list();
    expect(ok(await ask({ action: 'read', id }))).toEqual({ text: s.rings()[0]?.text });
    for (const action of ['read', 'retry', 'discard']) {
      expect(refused(await ask({ action, id: 'fdl_none' })).code).toBe('not_found');
      expect(refused(await ask({ action }))).toMatchObject({
        code: 'invalid_request',
        details: { field: 'id' },
      });
    }
    for (const input of [{ action: 'clear' }, {}, { action: 'list', more: 1 }])
      expect(refused(readFields(failedFields, input)).code).toBe('invalid_request');
    expect(refused(await failed(s.desk, { action: 'list' }, alice)).code).toBe('invalid_request');
    expect(refused(await ask({ action: 'read', id }, undefined, sessionCaller('s2'))).code).toBe('not_found');
    expect(ok(await ask({ action: 'discard', id }))).toEqual({ done: true });
    expect(refused(await ask({ action: 'discard', id })).code).toBe('not_found');
    await advance(30_000);
    await failOnce();
    s.mend();
    const [newer] = await list();
    expect(ok(await ask({ action: 'retry', id: newer?.id }, again))).toEqual({ done: true });
    expect(await list()).toEqual([]);
  });

  it('[INB-111] are 64 a session: the 65th is refused and said, and evicts nothing', async () => {
    await saveOthers(64);
    const ofAnother = other(65, { session_root: 's2' });
    await s.desk.store.write((tx) => tx.failures.save(ofAnother));
    expect(ok(await ask({ action: 'list' }, undefined, sessionCaller('s2')))).toMatchObject({
      failed: [{ id: 'fdl_65' }],
    });
    await failOnce();
    expect(await list()).toHaveLength(64);
    expect((await list()).map(({ id }) => id)).toEqual(Array.from({ length: 64 }, (_, n) => `fdl_${n + 1}`));
    expect(s.faults).toMatchObject([{ code: 'storage_quota_exceeded' }]);
    const [freed] = await list();
    ok(await ask({ action: 'discard', id: freed?.id }));
    await advance(30_000);
    await reconcile(s.desk, ringing, s.bell, (error) => s.faults.push(error));
    expect(await list()).toHaveLength(64);
    expect(s.faults).toHaveLength(1);
    await advance(60_000);
    await reconcile(s.desk, ringing, s.bell, (error) => s.faults.push(error));
    expect([(await list()).length, s.faults.length]).toEqual([64, 1]);
  });

  it('[INB-112] share one slot where they are ordinary notices: 70 of them and another are two', async () => {
    await saveOthers(1);
    s.host.script = 'refuse for good';
    for (let n = 0; n < 70; n += 1) {
      await posted(s.desk);
      await advance(300_000);
      await reconcile(s.desk, ringing, s.bell, (error) => s.faults.push(error));
    }
    expect(s.rings()).toHaveLength(70);
    const newest = s.desk.rows('SELECT notification_id FROM reservation ORDER BY seq DESC LIMIT 1');
    expect(await list()).toMatchObject([{ id: 'fdl_1' }, newest[0]]);
  });

  it('[INB-113] of that slot are cleared by the next success', async () => {
    await failOnce();
    expect(await list()).toHaveLength(1);
    s.mend();
    await advance(30_000);
    await reconcile(s.desk, ringing, s.bell, () => {});
    expect(await list()).toEqual([]);
  });

  it('[INB-113] of that slot are cleared by a hand-off of the router that succeeds', async () => {
    await attach(s.desk, 's1', { bell: 'codex-queue', adapter_kind: 'codex-queue', lease_ms: 300_000 });
    await failOnce();
    expect(await list()).toHaveLength(1);
    s.mend();
    await advance(30_000);
    await posted(s.desk, toSession);
    expect([s.desk.counts().host_accept, await list()]).toEqual([1, []]);
  });

  it('[INB-114] of other kinds outlive replacing and clearing, and can be read', async () => {
    await s.desk.store.write((tx) => {
      tx.failures.save(other(1));
      tx.failures.save(other(2, { kind: 'pairing', message_id: null, notification_id: 'ab12' }));
    });
    await failOnce();
    await advance(30_000);
    await reconcile(s.desk, ringing, s.bell, () => {});
    s.mend();
    await advance(60_000);
    await reconcile(s.desk, ringing, s.bell, () => {});
    expect((await list()).map(({ id }) => id)).toEqual(['fdl_1', 'fdl_2']);
    expect(ok(await ask({ action: 'read', id: 'fdl_1' }))).toEqual({ text: 'the text of 1' });
    expect(ok(await ask({ action: 'read', id: 'fdl_2' }))).toEqual({ text: 'the text of 2' });
    expect(refused(await ask({ action: 'retry', id: 'fdl_1' }, again)).code).toBe('invalid_request');
  });

  it('[INB-115] are listed with id, message or notice, sender, reason and bytes; read gives the text', async () => {
    await s.desk.store.write((tx) => tx.failures.save(other(1, { text: 'gr\u00fc\u00df' })));
    await failOnce();
    const [first, second] = await list();
    expect(first).toEqual({
      id: 'fdl_1',
      message_id: 'msg_1',
      sender: 'alice',
      reason: 'adapter_rejected',
      bytes: 6,
    });
    const text = s.rings()[0]?.text as string;
    expect(second).toEqual({
      id: expect.stringMatching(/^fdl_/),
      notification_id: /notification_id="([0-9a-f]+)"/.exec(text)?.[1],
      sender: 'postbell',
      reason: 'adapter_rejected',
      bytes: Buffer.byteLength(text),
    });
    expect(ok(await ask({ action: 'read', id: second?.id }))).toEqual({ text });
  });

  it('[INB-116, INB-030] are rung once more, one at a time: two retries are one call; success removes it and marks the notice', async () => {
    const message_id = await failOnce();
    const [{ id } = { id: '' }] = await list();
    const { answer } = s.fallSilent();
    const both = [ask({ action: 'retry', id }, again), ask({ action: 'retry', id }, again)];
    await advance(100);
    expect(s.rings()).toHaveLength(2);
    answer();
    await advance(100);
    const answers = await Promise.all(both);
    expect(answers[0]).toEqual({ done: true });
    expect(refused(answers[1])).toMatchObject({ code: 'recipient_unavailable', details: { reason: 'busy' } });
    expect([s.rings().length, await list(), s.stateOf(message_id)]).toEqual([2, [], 'host_queued']);
    expect(s.desk.counts().reservation).toBe(1);
  });

  it('that fail again are kept, under what failed now', async () => {
    const message_id = await failOnce();
    const [{ id } = { id: '' }] = await list();
    s.host.script = 'no such method';
    expect(refused(await ask({ action: 'retry', id }, again)).code).toBe('adapter_rejected');
    expect([(await list()).length, s.stateOf(message_id)]).toEqual([1, 'delivery_failed']);
  });

  it('are rung again at once by the notifier where the asking process holds no bell', async () => {
    s.host.script = 'refuse for good';
    s.startNotifier();
    const { message_id } = await posted(s.desk);
    await advance(10_000);
    s.mend();
    const [{ id } = { id: '' }] = await list();
    expect(ok(await ask({ action: 'retry', id }))).toEqual({ done: true });
    await advance(100);
    expect([s.rings().length, await list(), s.stateOf(message_id)]).toEqual([2, [], 'host_queued']);
  });

  it('[INB-117, INB-121] are discarded alone: the message waits and is read without them', async () => {
    const message_id = await failOnce();
    expect(ok(receive(s.desk, { project: 'shop' }, ringing.caller)).messages).toMatchObject([
      { message_id, payload: 'hello bob' },
    ]);
    const [{ id } = { id: '' }] = await list();
    ok(await ask({ action: 'discard', id }));
    expect(ok(receive(s.desk, { project: 'shop' }, ringing.caller)).messages).toMatchObject([
      { message_id, payload: 'hello bob' },
    ]);
    const conversation = await history(s.desk, { project: 'shop', peer: 'alice' }, ringing.caller);
    expect(ok(conversation).messages).toMatchObject([{ message_id, payload: 'hello bob' }]);
  });

  it('[INB-118] need no hand: a host that is repaired is rung within 300 s, and the slot is empty', async () => {
    s.host.script = 'refuse for good';
    s.startNotifier();
    const { message_id } = await posted(s.desk);
    await advance(1_000_000);
    expect(s.stateOf(message_id)).toBe('delivery_failed');
    s.mend();
    const before = s.rings().length;
    await advance(300_000);
    expect(s.rings()).toHaveLength(before + 1);
    expect([s.stateOf(message_id), await list()]).toEqual(['host_queued', []]);
  });

  it('[INB-119] never block a ring, be their table full or unwritable', async () => {
    const broken = failingStore(s.desk);
    const store = {
      ...broken.store,
      write: <T>(work: Parameters<typeof broken.store.write<T>>[0]) =>
        broken.store.write((tx) =>
          work({
            ...tx,
            failures: {
              ...tx.failures,
              save: () => {
                throw new Error('no such table');
              },
            },
          }),
        ),
    };
    s.host.script = 'refuse for good';
    const faults: unknown[] = [];
    const { stop } = runNotifier({ ...s.desk, store }, locksIn(s.desk.directory), ringing, s.bell, (error) =>
      faults.push(error),
    );
    atEnd(stop);
    await posted(s.desk);
    await advance(91_000);
    expect(s.rungAt()).toEqual([0, 30, 90]);
    expect([faults.length, await list()]).toEqual([3, []]);
    stop();
    await saveOthers(64);
    const second = runNotifier(s.desk, locksIn(s.desk.directory), ringing, s.bell, (error) =>
      faults.push(error),
    );
    atEnd(second.stop);
    await advance(120_000);
    expect(s.rungAt()).toEqual([0, 30, 90, 210]);
    expect(faults.slice(3)).toMatchObject([{ code: 'storage_quota_exceeded' }]);
    s.mend();
    await advance(240_000);
    expect(s.rungAt()).toEqual([0, 30, 90, 210, 450]);
  });

  it('[INB-120] survive a restart under the same session, and under each id of it', async () => {
    await failOnce();
    const before = await list();
    const store = await s.desk.secondStore();
    await store.write((tx) => tx.identity.link('s1b', 's1'));
    for (const id of ['s1', 's1b'])
      expect(ok(await failed({ ...s.desk, store }, { action: 'list' }, sessionCaller(id)))).toEqual({
        failed: before,
      });
  });

  it.each([
    ['a permanent failure', 'refuse for good', 1, 'adapter_rejected'],
    ['an unknown method', 'no such method', 1, 'adapter_rejected'],
    ['a host that is gone', 'dead', 1, 'adapter_disconnected'],
    ['exhausted retries', 'refuse', 3, 'adapter_error'],
    ['a time-out', 'silent', 1, 'host_outcome_timeout'],
  ] as const)('of %s save the notice and set delivery_failed', async (_, script, tries, reason) => {
    s.host.script = script;
    s.startNotifier();
    const { message_id } = await posted(s.desk);
    await advance(20_000);
    expect(s.rings()).toHaveLength(tries);
    expect(await list()).toMatchObject([{ reason }]);
    expect(s.stateOf(message_id)).toBe('delivery_failed');
  });

  it('[INB-105] leave the body readable; a later hand-off may succeed', async () => {
    const message_id = await failOnce();
    expect(s.stateOf(message_id)).toBe('delivery_failed');
    expect(s.waiting()).toEqual([message_id]);
    const scope = { project: 'shop', recipient: 'bob', target_kind: 'principal', message_id } as const;
    expect(fetchMessage(s.desk, scope)).toMatchObject({ message_id, payload: 'hello bob' });
    // Nor does reading it change that.
    expect(s.stateOf(message_id)).toBe('delivery_failed');
    s.mend();
    await advance(30_000);
    await reconcile(s.desk, ringing, s.bell, () => {});
    expect(s.stateOf(message_id)).toBe('host_queued');
  });

  it('of a hand-off are saved too, and the sender is told', async () => {
    await attach(s.desk, 's1', { bell: 'codex-queue', adapter_kind: 'codex-queue' });
    s.host.script = 'refuse for good';
    expect(refused(await post(s.desk, toSession))).toMatchObject({ details: { reason: 'adapter_rejected' } });
    expect(await list()).toMatchObject([{ reason: 'adapter_rejected', sender: 'postbell' }]);
  });
});
