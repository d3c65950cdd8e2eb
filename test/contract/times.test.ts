// Times as they are stored and returned, whatever the zone of the machine.

import BetterSqlite3 from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { ack } from '../../src/mailbox/ack.ts';
import { history } from '../../src/mailbox/history.ts';
import { intake } from '../../src/mailbox/intake.ts';
import { poll } from '../../src/mailbox/poll.ts';
import { receipts } from '../../src/mailbox/receipts.ts';
import { receive } from '../../src/mailbox/receive.ts';
import { status } from '../../src/mailbox/status.ts';
import { discover } from '../../src/sessions/discover.ts';
import { dispatch } from '../../src/sessions/dispatch.ts';
import { attach, ok, openScene, posted, sessionCaller } from './desk.ts';

const instant = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const isTime = (name: string): boolean => /(?:^|_)at$/.test(name);

/** Every field of any depth whose name says that it is a time. */
function timesIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, one]) =>
    isTime(name) && typeof one === 'string'
      ? [one]
      : name === 'last_rings'
        ? (one as string[])
        : timesIn(one),
  );
}

describe('a time', () => {
  it('[MSG-007] is ISO 8601 UTC with milliseconds in every field, stored and returned, in any zone', async () => {
    const zone = process.env.TZ;
    process.env.TZ = 'America/New_York';
    try {
      const desk = await openScene();
      await attach(desk, 's1');
      const sent = await posted(desk, {
        expires_at: '2026-03-01T15:00:00+03:00',
        intended_session: 's1',
      }).catch(() => undefined);
      expect(sent).toBeUndefined();
      const mail = await posted(desk, { expires_at: '2026-03-01T15:00:01+03:00', intended_session: 's1' });
      expect(mail.expires_at).toBe('2026-03-01T12:00:01.000Z');
      await dispatch(desk.board, 'shop', mail.delivery_id);
      const scope = { project: 'shop', recipient: 'bob', message_id: mail.message_id };
      ok(await intake(desk, { ...scope, idempotency_key: 'k', state: 'fetched' }, sessionCaller('s1')));
      await desk.clock.advance(5_000);
      const returned = [
        mail,
        ok(await poll(desk, scope)),
        ok(receipts(desk, scope)),
        ok(receive(desk, { project: 'shop' }, sessionCaller('s1'))),
        discover(desk, { project: 'shop', detail: true }),
        ok(await history(desk, { project: 'shop', peer: 'alice' }, sessionCaller('s1'))),
        ok(status(desk, { msg_id: mail.message_id }, sessionCaller('s1'))),
      ];
      const stored = desk
        .rows(`SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`)
        .flatMap(({ name }) => desk.rows(`SELECT * FROM "${String(name)}"`));
      const times = timesIn([...returned, ...stored]);
      expect(times.length).toBeGreaterThan(15);
      for (const time of times) expect(time).toMatch(instant);
    } finally {
      if (zone === undefined) delete process.env.TZ;
      else process.env.TZ = zone;
    }
  });

  it('[MSG-007] of an older row that has no zone counts as UTC', async () => {
    const zone = process.env.TZ;
    process.env.TZ = 'America/New_York';
    try {
      const desk = await openScene();
      const { message_id } = await posted(desk);
      const other = new BetterSqlite3(desk.path);
      await attach(desk, 's1');
      const scope = { project: 'shop', recipient: 'bob', message_id };
      const later = await posted(desk);
      expect((await dispatch(desk.board, 'shop', later.delivery_id)).delivered).toBe(true);
      ok(await ack(desk, { ...scope, idempotency_key: 'k' }, sessionCaller('s1')));
      const zoneless = '2026-02-28 23:30:00';
      for (const column of [
        'message SET created_at',
        'event SET created_at',
        'receipt SET recorded_at',
        'connection SET connected_at',
        'attempt SET started_at',
        'attempt SET finished_at',
        'host_accept SET accepted_at',
      ])
        other.prepare(`UPDATE ${column} = ?`).run(zoneless);
      other.close();
      const utc = '2026-02-28T23:30:00.000Z';
      expect(ok(await poll(desk, scope)).events).toMatchObject([{ created_at: utc }, { created_at: utc }]);
      expect(ok(await poll(desk, { project: 'shop', receipts: true, sender: 'alice' })).events).toMatchObject(
        [{ recorded_at: utc }],
      );
      expect(ok(receipts(desk, scope)).receipts).toMatchObject([{ recorded_at: utc }]);
      expect(discover(desk, { project: 'shop', detail: true })).toMatchObject([{ connected_at: utc }]);
      const accepted = ok(receipts(desk, { ...scope, message_id: later.message_id })).receipts;
      expect(accepted).toMatchObject([
        { receipt_kind: 'attempt', recorded_at: utc, finished_at: utc },
        { receipt_kind: 'host_accept', recorded_at: utc },
      ]);
      const again = await dispatch(desk.board, 'shop', later.delivery_id);
      expect(again.native_delivery?.accepted_at).toBe(utc);
      const { items } = desk.store.read((tx) => {
        const { position } = tx.feed.since(tx.feed.end());
        return tx.feed.since(Object.fromEntries(Object.keys(position).map((table) => [table, 0])) as never);
      });
      expect(new Set(items.filter(({ kind }) => kind !== 'connected').map(({ at }) => at))).toEqual(
        new Set([utc]),
      );
      const [mail] = ok(receive(desk, { project: 'shop' }, sessionCaller('s1'))).messages;
      expect(mail).toMatchObject({ message_id, created_at: '2026-02-28T23:30:00.000Z' });
    } finally {
      if (zone === undefined) delete process.env.TZ;
      else process.env.TZ = zone;
    }
  });
});
