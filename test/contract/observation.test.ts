// The observation beside an acceptance: what is known of the session that was meant, at the moment of reading.

import { beforeEach, describe, expect, it } from 'vitest';
import { listenerBell } from '../../src/hosts/claude-code/bell.ts';
import type { Caller } from '../../src/mailbox/desk.ts';
import { intake } from '../../src/mailbox/intake.ts';
import { runNotifier } from '../../src/mailbox/notifier.ts';
import { receipts } from '../../src/mailbox/receipts.ts';
import { receive } from '../../src/mailbox/receive.ts';
import { disconnect } from '../../src/sessions/disconnect.ts';
import { dispatch } from '../../src/sessions/dispatch.ts';
import { locksIn } from '../../src/store/lock.ts';
import { alice, atEnd, attach, ok, openScene, post, posted, type Scene, sessionCaller } from './desk.ts';

let desk: Scene;
beforeEach(async () => {
  desk = await openScene();
});

const scopeOf = (message_id: string, recipient = 'bob') => ({ project: 'shop', recipient, message_id });
const take = (message_id: string, caller: Caller, over = {}) =>
  intake(desk, { ...scopeOf(message_id), state: 'fetched', idempotency_key: 'k', ...over }, caller);
const observed = (message_id: string, recipient = 'bob') => {
  const fact = ok(receipts(desk, scopeOf(message_id, recipient))).receipts.find(
    ({ receipt_kind }) => receipt_kind === 'host_accept',
  );
  return fact?.receipt_kind === 'host_accept' ? fact.delivery_state : undefined;
};

describe('the observation beside an acceptance', () => {
  it('[MSG-104] is of the session that was meant, made anew at each reading, and never stored', async () => {
    const s1 = await attach(desk, 's1');
    await desk.store.write((tx) => tx.identity.link('s1b', 's1'));
    const plain = await posted(desk);
    ok(await dispatchAccepted(plain.delivery_id));
    const meant = await posted(desk, { intended_session: 's1b' });
    await desk.clock.advance(31_000);
    ok(await dispatchAccepted(meant.delivery_id));
    expect(observed(plain.message_id)).toEqual({
      observed_at: '2026-03-01T12:00:31.000Z',
      intake: 'pending',
      target_session: 'not_applicable',
    });
    const pending = { intake: 'pending', session: 's1b' };
    expect(observed(meant.message_id)).toMatchObject({ ...pending, target_session: 'live' });
    await disconnect(desk.board, s1.connection_id, 'socket_closed');
    expect(observed(meant.message_id)).toMatchObject({ ...pending, target_session: 'not_live' });
    const before = desk.counts();
    await desk.clock.advance(3_600_000);
    expect(observed(meant.message_id)).toMatchObject({ ...pending, target_session: 'not_live' });
    expect(desk.counts()).toEqual(before);
    expect(desk.handed).toHaveLength(2);
    await attach(desk, 's1b');
    expect(observed(meant.message_id)).toMatchObject({ ...pending, target_session: 'live' });
    ok(await take(meant.message_id, sessionCaller('s1')));
    expect(observed(meant.message_id)).toMatchObject({ intake: 'recorded', target_session: 'live' });
    const again = desk.rows(`SELECT connection_id FROM connection WHERE session_id = 's1b'`);
    await disconnect(desk.board, String(again[0]?.connection_id), 'socket_closed');
    expect(observed(meant.message_id)).toMatchObject({
      intake: 'recorded',
      target_session: 'not_live',
      session: 's1b',
    });
    ok(await take(plain.message_id, sessionCaller('s1')));
    expect(observed(plain.message_id)).toMatchObject({
      intake: 'recorded',
      target_session: 'not_applicable',
    });
    const ghost = await ghostly(s1.connection_id);
    expect(observed(ghost, 'ghost')).toMatchObject({
      intake: 'pending',
      target_session: 'unknown',
      session: 'ghost',
    });
    ok(await take(ghost, alice, { recipient: 'ghost' }));
    expect(observed(ghost, 'ghost')).toMatchObject({ intake: 'recorded', target_session: 'unknown' });
    const columns = desk.rows(
      `SELECT p.name FROM sqlite_schema s, pragma_table_info(s.name) p WHERE s.type = 'table'`,
    );
    const names = columns.map(({ name }) => name);
    for (const name of ['delivery_state', 'target_session', 'observed_at']) expect(names).not.toContain(name);
  });

  it('[MSG-104] of mail to an exact session names that session as it was addressed, whichever id is live', async () => {
    await attach(desk, 's1');
    await desk.store.write((tx) => tx.identity.link('s1b', 's1'));
    desk.onNotify = ({ project, delivery_id }) => dispatch(desk.board, project, delivery_id);
    const { message_id } = await posted(desk, { target_kind: 'session', recipient: 's1b' });
    const live = { target_session: 'live', session: 's1b' };
    expect(observed(message_id, 's1b')).toMatchObject({ ...live, intake: 'pending' });
    ok(await take(message_id, sessionCaller('s1'), { recipient: 's1b' }));
    expect(observed(message_id, 's1b')).toMatchObject({ ...live, intake: 'recorded' });
  });

  it('[MSG-105] of a session that ended moves nothing to its live sibling, and is live again when it is resumed', async () => {
    const s1 = await attach(desk, 's1');
    await attach(desk, 's2', { lease_ms: 300_000 });
    desk.onNotify = ({ project, delivery_id }) => dispatch(desk.board, project, delivery_id);
    const meant = await posted(desk, { intended_session: 's1', idempotency_key: 'meant' });
    expect(desk.handed.map(({ session_id }) => session_id)).toEqual(['s1']);
    await disconnect(desk.board, s1.connection_id, 'socket_closed');
    const ringing = { caller: sessionCaller('s2'), project: 'shop' };
    const faults: unknown[] = [];
    const notifier = runNotifier(desk, locksIn(desk.directory), ringing, listenerBell(desk), (error) =>
      faults.push(error),
    );
    atEnd(() => notifier.stop());
    await desk.clock.advance(200_000);
    const pending = { intake: 'pending', session: 's1' };
    expect(observed(meant.message_id)).toMatchObject({ ...pending, target_session: 'not_live' });
    expect(await dispatch(desk.board, 'shop', meant.delivery_id)).toMatchObject({ delivered: true });
    const second = await posted(desk, { intended_session: 's1' });
    await desk.clock.advance(50_000);
    expect(ok(receive(desk, { project: 'shop' }, sessionCaller('s2'))).messages).toEqual([]);
    expect(desk.rows('SELECT 1 FROM attempt WHERE delivery_id = ?', second.delivery_id)).toEqual([]);
    expect(desk.counts()).toMatchObject({ attempt: 1, listener_row: 0 });
    expect([desk.handed.length, faults]).toEqual([1, []]);
    await attach(desk, 's1');
    expect(observed(meant.message_id)).toMatchObject({ ...pending, target_session: 'live' });
    expect(ok(receive(desk, { project: 'shop' }, sessionCaller('s1'))).messages).toHaveLength(2);
    const copy = await posted(desk);
    expect(ok(receive(desk, { project: 'shop' }, sessionCaller('s2'))).messages).toMatchObject([
      { message_id: copy.message_id },
    ]);
    ok(await take(meant.message_id, sessionCaller('s1')));
    expect(observed(meant.message_id)).toMatchObject({ intake: 'recorded', session: 's1' });
  });

  /** Mail for a session that nobody registered, as if another's connection had accepted it. */
  async function ghostly(connection_id: string): Promise<string> {
    await post(desk, { target_kind: 'session', recipient: 'ghost' });
    const [row] = desk.rows(`SELECT message_id, delivery_id FROM delivery WHERE recipient = 'ghost'`);
    const { message_id, delivery_id } = row as { message_id: string; delivery_id: string };
    const attempt = { attempt_id: 'att_ghost', delivery_id };
    await desk.store.write((tx) => {
      tx.attempts.start({ ...attempt, connection_id, router_instance: 'run_1', at: 'now' });
      const acceptance = {
        ...attempt,
        host_accept_id: 'acc_ghost',
        content: 'notice',
        receipt: '{}',
      } as const;
      tx.attempts.accept({ ...acceptance, adapter_kind: 'claude-listener', accepted_at: 'now' });
    });
    return message_id;
  }

  async function dispatchAccepted(delivery_id: string) {
    const answer = await dispatch(desk.board, 'shop', delivery_id);
    expect(answer.native_delivery?.status).toBe('native_accepted');
    return answer;
  }
});
