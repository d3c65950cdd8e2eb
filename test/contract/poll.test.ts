// Events of one inbox: cursors, and waiting for the first one.

import { beforeEach, describe, expect, it } from 'vitest';
import { intake } from '../../src/mailbox/intake.ts';
import { poll } from '../../src/mailbox/poll.ts';
import { untilTouched } from '../../src/mailbox/until-touched.ts';
import { readFields } from '../../src/protocol/fields.ts';
import { pollFields } from '../../src/protocol/requests.ts';
import { dispatch } from '../../src/sessions/dispatch.ts';
import { settle } from './clock.ts';
import {
  alice,
  attach,
  difference,
  letter,
  ok,
  openScene,
  posted,
  read,
  refused,
  type Scene,
} from './desk.ts';

let desk: Scene;
beforeEach(async () => {
  desk = await openScene();
});

const ask = async (over: Record<string, unknown> = {}) =>
  poll(desk, read(pollFields, { project: 'shop', recipient: 'bob', ...over }));

describe('polling', () => {
  it('[MSG-071] lists the events of one inbox, oldest first and without payload', async () => {
    const first = await posted(desk, { payload: 'a secret body' });
    await posted(desk, { recipient: 'carol' });
    await posted(desk, { project: 'bank' });
    await desk.clock.advance(1_000);
    const sent = [first.event_id];
    for (let n = 0; n < 20; n += 1) sent.push((await posted(desk)).event_id);
    const { events, ...scope } = ok(await ask());
    expect(scope).toMatchObject({ project: 'shop', recipient: 'bob' });
    expect(events).toHaveLength(20);
    expect(events[0]).toEqual({
      event_id: first.event_id,
      event_kind: 'message_available',
      message_id: first.message_id,
      delivery_id: first.delivery_id,
      project: 'shop',
      recipient: 'bob',
      target_kind: 'principal',
      created_at: '2026-03-01T12:00:00.000Z',
    });
    expect(JSON.stringify(events)).not.toContain('secret');
    for (const event of events) expect(event).toMatchObject({ recipient: 'bob', project: 'shop' });
    const all = ok(await ask({ limit: 100 })).events;
    expect([all, events].map((list) => list.map(({ event_id }) => event_id))).toEqual([
      sent,
      sent.slice(0, 20),
    ]);
    expect(ok(await ask({ recipient: 'nobody' })).events).toEqual([]);
    expect(ok(await ask({ limit: 1 })).events).toEqual([events[0]]);
    const wrong = [{ limit: 0 }, { limit: 101 }, { wait_ms: -1 }, { wait_ms: 30_001 }, { limit: 1.5 }];
    for (const over of wrong)
      expect(refused(readFields(pollFields, { project: 'shop', recipient: 'bob', ...over })).code).toBe(
        'invalid_request',
      );
    const touches = desk.wake.touches;
    await ask();
    expect(desk.wake.touches).toBe(touches);
  });

  it('[MSG-074] answers twice the same for one cursor', async () => {
    for (let n = 0; n < 5; n += 1) await posted(desk);
    const start = ok(await ask({ limit: 2 }));
    const cursor = start.next_cursor as string;
    const next = ok(await ask({ cursor, limit: 2 }));
    expect(ok(await ask({ cursor, limit: 2 }))).toEqual(next);
    expect(ok(await ask({ limit: 2 }))).toEqual(start);
    const seen = [...start.events, ...next.events].map(({ event_id }) => event_id);
    expect(new Set(seen).size).toBe(4);
    const before = desk.counts();
    await ask({ cursor, limit: 2 });
    expect(difference(before, desk.counts())).toEqual({});
  });

  it('[MSG-073] has a cursor of at most 160 characters that outlives a restart, for its own inbox only', async () => {
    await posted(desk);
    const cursor = ok(await ask()).next_cursor as string;
    expect(cursor.length).toBeLessThanOrEqual(160);
    expect(ok(await ask({ cursor }))).toMatchObject({ events: [], next_cursor: cursor });
    const late = await posted(desk);
    const reopened = await desk.secondStore();
    const scope = { project: 'shop', recipient: 'bob' };
    const again = ok(await poll({ ...desk, store: reopened }, { ...scope, cursor }));
    expect(again.events.map(({ event_id }) => event_id)).toEqual([late.event_id]);
    for (const over of [{ recipient: 'carol' }, { project: 'bank' }, {}])
      expect(
        refused(await ask({ ...over, cursor: Object.keys(over).length > 0 ? cursor : 'cur_unknown' })).code,
      ).toBe('invalid_cursor');
    // An inbox and what a sender of its name sent are two scopes.
    const own = { project: 'shop', sender: 'bob', receipts: true };
    const about = await posted(desk, { sender: 'bob', recipient: 'carol' });
    const taken = { project: 'shop', recipient: 'carol', idempotency_key: 'i', state: 'fetched' } as const;
    ok(await intake(desk, { ...taken, message_id: about.message_id }, alice));
    const receiptCursor = ok(await poll(desk, read(pollFields, own))).next_cursor as string;
    expect(refused(await ask({ cursor: receiptCursor })).code).toBe('invalid_cursor');
    expect(refused(await poll(desk, read(pollFields, { ...own, cursor }))).code).toBe('invalid_cursor');
    const waited = ask({ cursor: again.next_cursor, wait_ms: 500 });
    await desk.clock.advance(500);
    expect(ok(await waited).next_cursor).toBe(again.next_cursor);
    expect(ok(await ask({ recipient: 'nobody' })).next_cursor).toBeNull();
  });

  it('lists what a host has accepted too', async () => {
    await attach(desk, 's1');
    const sent = await posted(desk);
    expect(await dispatch(desk.board, 'shop', sent.delivery_id)).toMatchObject({ delivered: true });
    expect(ok(await ask()).events.map(({ event_id }) => event_id)).toEqual([sent.event_id]);
  });
});

describe('a poll that waits', () => {
  /** What remains of a wait that is over. */
  const leftovers = () => ({ timers: desk.clock.pending, watchers: desk.wake.watchers });
  const nothing = { timers: 0, watchers: 0 };

  it('ends with the first event, after its time, or with its client; and nothing of it is left', async () => {
    const first = ask({ wait_ms: 30_000 });
    await desk.clock.advance(200);
    const sent = await posted(desk);
    expect(ok(await first).events.map(({ event_id }) => event_id)).toEqual([sent.event_id]);
    expect(leftovers()).toEqual(nothing);
    const { next_cursor: cursor } = ok(await ask());
    let ended = false;
    const idle = ask({ cursor, wait_ms: 30_000 }).then((answer) => {
      ended = true;
      return ok(answer);
    });
    await desk.clock.advance(29_999);
    expect(ended).toBe(false);
    await desk.clock.advance(1);
    expect(await idle).toMatchObject({ events: [], next_cursor: cursor });
    expect(leftovers()).toEqual(nothing);
    const client = new AbortController();
    const scope = { project: 'shop', recipient: 'bob', cursor: cursor as string, wait_ms: 30_000 };
    const dropped = poll(desk, scope, client.signal);
    await settle();
    client.abort();
    expect(ok(await dropped).events).toEqual([]);
    expect(leftovers()).toEqual(nothing);
    expect(ok(await poll(desk, scope, client.signal)).events).toEqual([]);
    expect(leftovers()).toEqual(nothing);
  });

  it('sees on its tick what a writer committed that died before its touch', async () => {
    const other = {
      ...desk,
      store: await desk.secondStore(),
      wake: { touch: () => {}, watch: () => () => {} },
    };
    const two = [ask({ wait_ms: 30_000 }), ask({ wait_ms: 30_000 })];
    await settle();
    await posted(other, letter());
    await desk.clock.advance(2_000);
    for (const answer of await Promise.all(two)) expect(ok(answer).events).toHaveLength(1);
    expect(leftovers()).toEqual(nothing);
  });

  it('fails as the store does, once', async () => {
    const failing = untilTouched(desk, 5_000, () => {
      throw new RangeError('unreadable');
    });
    await expect(failing).rejects.toThrow(RangeError);
    expect(leftovers()).toEqual(nothing);
  });
});
