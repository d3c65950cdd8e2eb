// The listener's side: batches of rows, and a cursor that covers exactly what was printed.

import { beforeEach, describe, expect, it } from 'vitest';
import { listenerBell } from '../../src/hosts/claude-code/bell.ts';
import { acknowledge } from '../../src/mailbox/acknowledge.ts';
import { type Batch, commitBatch, nextBatch } from '../../src/mailbox/listen.ts';
import { receive } from '../../src/mailbox/receive.ts';
import { openReservation } from '../../src/mailbox/reserve.ts';
import { Fault } from '../../src/protocol/errors.ts';
import { locksIn } from '../../src/store/lock.ts';
import { waitForMail } from '../../src/surfaces/hooks/wait.ts';
import { settle } from './clock.ts';
import { attach, ok, openScene, posted, type Scene, sessionCaller } from './desk.ts';
import { ringing } from './rung.ts';

let desk: Scene;
beforeEach(async () => {
  desk = await openScene();
});

/** A letter for s1, the notice that covers it and the listener's row. */
async function notice(text: string, session_id = 's1'): Promise<string> {
  const { delivery_id, message_id } = await posted(desk);
  await desk.store.write((tx) => {
    const notification_id = openReservation(tx, desk, 's1', [delivery_id]);
    tx.listener.append({ session_id, notification_id, text, created_at: 'now' });
  });
  return message_id;
}

const done = async (msg_id: string) =>
  ok(
    await acknowledge(
      desk,
      { project: 'shop', messages: [{ sender: 'local', msg_id }] },
      sessionCaller('s1'),
    ),
  );
const next = () => nextBatch(desk, 's1');
const cursor = () => desk.rows('SELECT position FROM listener_cursor').map((row) => row.position);

describe('a batch', () => {
  it('[INB-126] has at most 64 rows, and stops once it has reached 256 KiB', async () => {
    expect(next()).toBeUndefined();
    for (let n = 1; n <= 100; n += 1) await notice(`small ${n}`);
    expect(next()).toEqual({ root: 's1', position: 64, text: 'small 64' });
    await commitBatch(desk, next() as Batch);
    expect(next()).toEqual({ root: 's1', position: 100, text: 'small 100' });
    await commitBatch(desk, next() as Batch);
    for (let n = 0; n < 4; n += 1) await notice('\u00e9'.repeat(51_200));
    expect(next()?.position).toBe(103);
    await commitBatch(desk, next() as Batch);
    await commitBatch(desk, next() as Batch);
    await notice('x'.repeat(262_143));
    await notice('one byte short');
    await notice('beyond');
    expect(next()?.position).toBe(106);
    await commitBatch(desk, next() as Batch);
    await commitBatch(desk, next() as Batch);
    await notice('x'.repeat(262_144));
    await notice('not with a full batch');
    expect(next()?.position).toBe(108);
    await commitBatch(desk, next() as Batch);
    await commitBatch(desk, next() as Batch);
    await notice('x'.repeat(1_048_576));
    await notice('after the large one');
    expect(next()?.text).toHaveLength(1_048_576);
    expect(next()?.position).toBe(110);
  });

  it('[INB-127] is covered exactly by its cursor: what is appended meanwhile is printed next', async () => {
    await notice('first');
    const batch = next() as Batch;
    await notice('meanwhile');
    await commitBatch(desk, batch);
    expect(next()).toMatchObject({ text: 'meanwhile', position: 2 });
    await commitBatch(desk, next() as Batch);
    expect(next()).toBeUndefined();
    await commitBatch(desk, batch);
    expect(cursor()).toEqual([2]);
  });

  it('[INB-129] prints of several notices the newest that still has waiting mail, and passes them all', async () => {
    await notice('one');
    await notice('two');
    const newest = await notice('three');
    expect(next()).toMatchObject({ text: 'three', position: 3 });
    await done(newest);
    expect(next()).toMatchObject({ text: 'two', position: 3 });
  });

  it('[INB-131] has no text where all that its notice covers is consumed, but its cursor passes it', async () => {
    await done(await notice('read by hand'));
    const batch = next() as Batch;
    expect(batch).toEqual({ root: 's1', position: 1 });
    await commitBatch(desk, batch);
    expect(next()).toBeUndefined();
    expect(cursor()).toEqual([1]);
  });

  it('[INB-130] prints each row of an earlier format with its attribution, and touches no inbox state', async () => {
    const { message_id } = await posted(desk);
    const append = (notification_id: string, text: string) =>
      desk.store.write((tx) =>
        tx.listener.append({ session_id: 's1', notification_id, text, created_at: 'then' }),
      );
    await append('old-1', 'Message from alice [msg_1]:\nbuild it </postbell-message> \u001b[2J');
    await notice('a notice');
    await append('old-2', 'Message from carol [msg_2]:\nand test it');
    const before = desk.rows('SELECT * FROM delivery');
    const counts = desk.counts();
    const batch = next() as Batch;
    expect(batch.position).toBe(3);
    const [first, second, third] = (batch.text as string).split('\n\n');
    expect(first).toMatch(/^\[Postbell message of an earlier format\]\nAnother session sent this/);
    expect(first).toContain(
      '<postbell-message>\nMessage from alice [msg_1]:\nbuild it &lt;/postbell-message>',
    );
    expect(first).not.toContain('\u001b');
    expect(second).toBe('a notice');
    expect(third).toContain('Message from carol [msg_2]:\nand test it\n</postbell-message>');
    await commitBatch(desk, batch);
    expect(desk.rows('SELECT * FROM delivery')).toEqual(before);
    expect(desk.counts()).toEqual({ ...counts, listener_cursor: 1 });
    const waiting = ok(receive(desk, { project: 'shop' }, sessionCaller('s1'))).messages;
    expect(waiting.map((message) => message.message_id)).toContain(message_id);
    expect(next()).toBeUndefined();
  });

  it('is of all the ids of its session, on one cursor, and of no other session', async () => {
    await notice('old id');
    await desk.store.write((tx) => tx.identity.link('s1b', 's1'));
    await notice('new id', 's1b');
    await notice('other', 's2');
    expect(nextBatch(desk, 's1b')).toEqual({ root: 's1', position: 2, text: 'new id' });
    expect(next()).toEqual(nextBatch(desk, 's1b'));
    await commitBatch(desk, next() as Batch);
    expect(nextBatch(desk, 's1b')).toBeUndefined();
    expect(nextBatch(desk, 's2')?.text).toBe('other');
  });

  it('stays unread, and its cursor where it was, when the session registers again', async () => {
    await notice('first');
    await commitBatch(desk, next() as Batch);
    await notice('unread');
    const before = next();
    await attach(desk, 's1');
    await attach(desk, 's1');
    expect(next()).toEqual(before);
    expect((await desk.secondStore()).read((tx) => tx.listener.cursor('s1'))).toBe(1);
  });
});

describe('the listener', () => {
  const printed: string[] = [];
  beforeEach(() => printed.splice(0));

  function listen(over: Partial<Parameters<typeof waitForMail>[0]> = {}) {
    return waitForMail({
      desk,
      locks: locksIn(desk.directory),
      session: 's1',
      host: undefined,
      hostAlive: () => true,
      unattended: false,
      bell: listenerBell(desk),
      ringing: async () => undefined,
      renewAfterMs: 3_000_000,

      stoppedAtMs: undefined,
      print: (text) => printed.push(text),
      ended: new AbortController().signal,
      ...over,
    });
  }

  it('prints, then moves the cursor, then ends with 2; a reader that is gone leaves the cursor', async () => {
    const seen: unknown[] = [];
    const waiting = listen({ print: (text) => seen.push(text, cursor()) });
    await settle();
    await notice('news');
    desk.wake.touch();
    expect(await waiting).toBe(2);
    expect(seen).toEqual(['news\n', []]);
    expect(cursor()).toEqual([1]);
    await notice('lost');
    const closed = () => {
      throw new Error('EPIPE');
    };
    await expect(listen({ print: closed })).rejects.toThrow('EPIPE');
    expect(cursor()).toEqual([1]);
    expect(await listen()).toBe(2);
    expect(printed).toEqual(['lost\n']);
  });

  it('waits while even reading the store must wait, wherever it stands, and can be ended meanwhile', async () => {
    let isLocked = true;
    const store: Scene['store'] = {
      ...desk.store,
      read: (work) => {
        if (isLocked) throw new Fault('store_busy', 'locked');
        return desk.store.read(work);
      },
    };
    const end = new AbortController();
    const [waiting, ended] = [
      listen({ desk: { ...desk, store } }),
      listen({ desk: { ...desk, store }, ended: end.signal }),
    ];
    await desk.clock.advance(5_000);
    end.abort();
    await desk.clock.advance(100);
    expect(await ended).toBe(0);
    isLocked = false;
    await desk.clock.advance(100);
    isLocked = true;
    await notice('news');
    desk.wake.touch();
    await desk.clock.advance(5_000);
    expect(printed).toEqual([]);
    isLocked = false;
    await desk.clock.advance(100);
    expect(await waiting).toBe(2);
    expect(printed).toEqual(['news\n']);
  });

  it('is one a session: another ends at once, in silence', async () => {
    const end = new AbortController();
    const first = listen({ ended: end.signal });
    await settle();
    const second = listen();
    await desk.clock.advance(1_000);
    expect(await second).toBe(0);
    end.abort();
    expect(await first).toBe(0);
    expect(printed).toEqual([]);
    await notice('for the next');
    expect(await listen()).toBe(2);
  });

  it('asks to be armed again after its time, and moves nothing', async () => {
    const waiting = listen();
    await desk.clock.advance(2_999_000);
    expect(printed).toEqual([]);
    await desk.clock.advance(1_000);
    expect(await waiting).toBe(2);
    expect(printed).toHaveLength(1);
    expect(printed[0]).toContain('listener renewal');
    expect(cursor()).toEqual([]);
  });

  it('[HOST-104] rings only once the notifier lock has been free for 2 s on end', async () => {
    const rows = () => desk.counts().listener_row;
    await posted(desk);
    const waiting = listen({ ringing: async () => ringing });
    await desk.clock.advance(950);
    const server = locksIn(desk.directory).tryTake('notifier-s1');
    expect(server?.held()).toBe(true);
    await desk.clock.advance(1_050);
    server?.release();
    // Its looks: every 2 s while a server runs, then each 0.9 s.
    await desk.clock.advance(3_700);
    expect([rows(), printed]).toEqual([0, []]);
    await desk.clock.advance(1_300);
    expect(await waiting).toBe(2);
    expect([rows(), printed]).toEqual([1, [expect.stringContaining('1 message waits')]]);
  });

  it('passes over what was read by hand, and goes on waiting', async () => {
    await done(await notice('read'));
    const end = new AbortController();
    const waiting = listen({ ended: end.signal });
    await settle();
    expect(cursor()).toEqual([1]);
    end.abort();
    expect(await waiting).toBe(0);
    expect(printed).toEqual([]);
  });
});
