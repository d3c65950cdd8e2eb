// What every bell owes to the mail that it announces: how it is consumed, when it is rung for again, and that nothing is lost on the way.

import { beforeEach, describe, expect, it } from 'vitest';
import { acknowledge } from '../../src/mailbox/acknowledge.ts';
import { history } from '../../src/mailbox/history.ts';
import { receive } from '../../src/mailbox/receive.ts';
import { ok, posted, sessionCaller } from '../contract/desk.ts';
import { failingStore } from '../contract/failing.ts';
import type { MakeAdapter } from './adapters.ts';
import { type Belled, openBelled, ringing } from './scene.ts';

let s: Belled;
let make: MakeAdapter;

const advance = (ms: number): Promise<void> => s.desk.clock.advance(ms);
const fetched = () => ok(receive(s.desk, { project: 'shop' }, ringing.caller)).messages;
const notices = (): (string | undefined)[] =>
  s.rings().map(({ text }) => /notification_id="([0-9a-f]+)"/.exec(text)?.[1]);
/** A ring that waits for the end of a turn comes then. */
const endTurn = async (): Promise<void> => {
  s.host.endTurn();
  await advance(s.bell.describe().pendingMax === 1 ? 2_000 : 0);
};

export function duties(name: string, adapter: MakeAdapter): void {
  describe(`[INB-159] mail that ${name} announces`, () => {
    beforeEach(async () => {
      make = adapter;
      s = await openBelled(make);
    });
    consumed();
    rungAgain();
    kept();
  });
}

function consumed(): void {
  it('is consumed by its history while the host is busy: no later turn is given its body, and the next message rings', async () => {
    s.startNotifier();
    s.host.startTurn();
    const { message_id } = await posted(s.desk, { payload: 'while it is busy' });
    await advance(1_000);
    const { messages } = ok(await history(s.desk, { project: 'shop', peer: 'alice' }, ringing.caller));
    expect(messages).toMatchObject([{ payload: 'while it is busy' }]);
    await s.done(message_id);
    await endTurn();
    await advance(400_000);
    expect([s.read, s.waiting()]).toEqual([[], []]);
    expect(s.rings().length).toBeLessThanOrEqual(1);
    const before = s.rings().length;
    const next = await posted(s.desk);
    await advance(1_000);
    expect([s.rings().length - before, s.read]).toEqual([1, [next.message_id]]);
  });

  it('ends its waiting by explicit acknowledgement alone: not by a notice, and not by a fetch', async () => {
    s.startNotifier();
    s.host.ignores = true;
    const { message_id } = await posted(s.desk);
    await advance(1_000);
    const [got] = fetched();
    await advance(31_000);
    expect([s.waiting(), s.rings().length]).toEqual([[message_id], 2]);
    const messages = [got?.receipt as object];
    expect(ok(await acknowledge(s.desk, { project: 'shop', messages }, ringing.caller)).acknowledged).toBe(1);
    await advance(1_000_000);
    expect([s.waiting(), s.rings().length]).toEqual([[], 2]);
  });

  it('is there again after a read whose answer was lost, and after a restart', async () => {
    const { message_id } = await posted(s.desk, { payload: 'read and lost' });
    fetched();
    const next = await openBelled(make, s.desk);
    expect(fetched()).toMatchObject([{ message_id, payload: 'read and lost' }]);
    const again = ok(receive(await otherDesk(next), { project: 'shop' }, sessionCaller('s1'))).messages;
    expect(again).toMatchObject([{ message_id, payload: 'read and lost' }]);
  });
}

/** As another process sees the store. */
async function otherDesk({ desk }: Belled): Promise<Belled['desk']> {
  return { ...desk, store: await desk.secondStore() };
}

function rungAgain(): void {
  it('is not rung for twice where its process starts anew within the time of a notice', async () => {
    s.host.ignores = true;
    const stop = s.startNotifier();
    await posted(s.desk);
    await advance(1_000);
    expect(s.desk.counts().reservation).toBe(1);
    stop();
    const next = await openBelled(make, s.desk);
    next.host.ignores = true;
    next.startNotifier();
    await advance(28_000);
    expect(s.desk.counts().reservation).toBe(1);
    await advance(2_000);
    expect(s.desk.counts().reservation).toBe(2);
  });

  it('is rung for under a new id once its notice has expired, and the old one reads what waits now', async () => {
    s.host.ignores = true;
    s.startNotifier();
    const { message_id } = await posted(s.desk);
    await advance(29_000);
    expect(notices()).toHaveLength(1);
    await advance(2_000);
    const [first, second] = notices();
    expect([notices().length, first === second, s.waiting(first)]).toEqual([2, false, [message_id]]);
  });

  it('is of the updates of a task the newest alone, which no notice is rung for and the next one counts', async () => {
    s.startNotifier();
    const update = (payload: string) => posted(s.desk, { payload, task_id: 't', status: 'update' });
    for (const payload of ['10 %', '20 %', '30 %']) await update(payload);
    await advance(600_000);
    expect([s.rings(), fetched().map(({ payload }) => payload)]).toEqual([[], ['30 %']]);
    await posted(s.desk, { payload: 'a question' });
    await advance(1_000);
    expect(s.rings()).toHaveLength(1);
    expect(s.rings()[0]?.text).toMatch(/1 message waits.*1 progress/);
    await update('40 %');
    expect(fetched().map(({ payload }) => payload)).toEqual(['a question', '40 %']);
  });
}

function kept(): void {
  it('is lost by no write that fails: what was answered is there, and is rung for once the store can be written', async () => {
    const { message_id } = await posted(s.desk);
    const { database, store } = failingStore(s.desk);
    const sound = s.desk.store;
    s.desk.store = store;
    const failing = await openBelled(make, s.desk);
    const stop = failing.startNotifier();
    for (let round = 0; round < 3; round += 1) {
      database.left = 1;
      await advance(1_000);
    }
    stop();
    expect([failing.faults.length > 0, failing.waiting()]).toEqual([true, [message_id]]);
    expect(s.desk.counts()).toMatchObject({ message: 1, receipt: 0, host_accept: 0 });
    database.left = Number.POSITIVE_INFINITY;
    s.desk.store = sound;
    const next = await openBelled(make, s.desk);
    next.startNotifier();
    await advance(31_000);
    // Where the notice is a row of ours, whoever listens reads it.
    const read = [s, failing, next].flatMap((one) => one.read);
    expect([next.rings().length > 0, new Set(read)]).toEqual([true, new Set([message_id])]);
  });
}
