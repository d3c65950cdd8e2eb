// An attempt to hand over: written before, finished once, and what it leaves.

import { beforeEach, describe, expect, it } from 'vitest';
import { receipts } from '../../src/mailbox/receipts.ts';
import { closeLeftOpen, disconnect, expireLeases } from '../../src/sessions/disconnect.ts';
import { dispatch } from '../../src/sessions/dispatch.ts';
import type { HostOutcome } from '../../src/sessions/switchboard.ts';
import { settle } from './clock.ts';
import { accepted, attach, letter, ok, openScene, post, posted, refused, type Scene } from './desk.ts';
import { failingStore } from './failing.ts';

let desk: Scene;
beforeEach(async () => {
  desk = await openScene();
  desk.onNotify = ({ project, delivery_id }) => dispatch(desk.board, project, delivery_id);
});

const toSession = (over: Record<string, unknown> = {}) => ({
  target_kind: 'session',
  recipient: 's1',
  ...over,
});
const attempts = () =>
  desk.rows(
    'SELECT attempt_number, state, failure_code, finished_at IS NOT NULL AS finished FROM attempt ORDER BY seq',
  );
const stateOf = (message_id: string, recipient = 'bob') =>
  ok(receipts(desk, { project: 'shop', recipient, message_id })).delivery_state;

describe('an attempt', () => {
  const outcomes: [string, HostOutcome, string, string | null][] = [
    ['accepted', accepted, 'adapter_returned', null],
    [
      'rejected',
      { outcome: 'rejected', failure_code: 'adapter_rejected' },
      'adapter_rejected',
      'adapter_rejected',
    ],
    [
      'rejected by a fault',
      { outcome: 'rejected', failure_code: 'adapter_error' },
      'adapter_rejected',
      'adapter_error',
    ],
    ['left unanswered', { outcome: 'timeout' }, 'adapter_failed', 'host_outcome_timeout'],
    ['cut off', { outcome: 'disconnected' }, 'adapter_failed', 'adapter_disconnected'],
  ];

  it.each(outcomes)(
    '[SES-100] that is %s is finished once, and keeps what it was',
    async (_, outcome, state, code) => {
      const { connection_id, generation } = await attach(desk, 's1');
      desk.host = () => {
        expect(attempts()).toEqual([
          { attempt_number: 1, state: 'started', failure_code: null, finished: 0 },
        ]);
        return outcome;
      };
      const request = letter(toSession());
      const answer = await post(desk, request);
      const finished = { attempt_number: 1, state, failure_code: code, finished: 1 };
      expect(attempts()).toEqual([finished]);
      const [row] = desk.rows('SELECT connection_id, router_instance, attempt_id FROM attempt');
      expect(row).toMatchObject({ connection_id, router_instance: 'run_1' });
      await desk.store.write((tx) =>
        tx.attempts.finish(String(row?.attempt_id), 'adapter_returned', undefined, 'later'),
      );
      expect(attempts()).toEqual([finished]);
      if (code === null) return;
      expect(refused(answer)).toMatchObject({ code: 'recipient_unavailable', details: { reason: code } });
      const { message_id } = refused(answer).details as { message_id: string };
      expect(stateOf(message_id, 's1')).toBe('delivery_failed');
      desk.host = () => accepted;
      await posted(desk, request);
      expect(attempts()).toEqual([
        finished,
        { attempt_number: 2, state: 'adapter_returned', failure_code: null, finished: 1 },
      ]);
      const facts = ok(receipts(desk, { project: 'shop', recipient: 's1', message_id })).receipts;
      expect(facts.map(({ receipt_kind }) => receipt_kind)).toEqual(['attempt', 'attempt', 'host_accept']);
      expect(facts[0]).toMatchObject({
        generation,
        attempt_number: 1,
        failure_code: code,
        actor: 'postbell-router',
      });
      await posted(desk, toSession());
      expect(attempts()[2]).toMatchObject({ attempt_number: 1, state: 'adapter_returned' });
    },
  );

  const endings: [string, (connectionId: string) => Promise<unknown>, string, string][] = [
    ['replaced', () => attach(desk, 's1'), 'stale_generation', 'replaced'],
    ['closed', (id) => disconnect(desk.board, id, 'socket_closed'), 'adapter_failed', 'adapter_disconnected'],
    ['expired', expired, 'stale_generation', 'replaced'],
    [
      'left by a router',
      () => closeLeftOpen({ ...desk.board, instance: 'run_2' }),
      'adapter_failed',
      'adapter_disconnected',
    ],
  ];

  async function expired(): Promise<void> {
    await desk.clock.advance(60_000);
    await expireLeases(desk.board);
  }

  it.each(endings)(
    '[SES-041, SES-100] ends with its connection, which was %s, and the sender is told',
    async (_, end, state, reason) => {
      const { connection_id } = await attach(desk, 's1');
      desk.host = async () => {
        await end(connection_id);
        expect(attempts()).toMatchObject([{ state, finished: 1 }]);
        return accepted;
      };
      expect(refused(await post(desk, toSession())).details?.reason).toBe(reason);
      expect(desk.counts().host_accept).toBe(0);
      expect(attempts()).toMatchObject([{ attempt_number: 1, state }]);
    },
  );

  it('[SES-041] is not begun for a connection whose lease has run out, noticed or not', async () => {
    await attach(desk, 's1');
    await desk.clock.advance(60_000);
    expect(refused(await post(desk, toSession())).details?.reason).toBe('not_live');
    await posted(desk);
    expect([desk.handed, desk.counts().attempt]).toEqual([[], 0]);
  });

  it('[SES-101] whose connection ran out of its lease meanwhile, unnoticed, is no acceptance', async () => {
    await attach(desk, 's1');
    desk.host = async () => {
      await desk.clock.advance(60_000);
      return accepted;
    };
    expect(refused(await post(desk, toSession())).details?.reason).toBe('not_live');
    expect(desk.counts().host_accept).toBe(0);
    expect(attempts()).toMatchObject([{ state: 'stale_generation', finished: 1 }]);
  });

  it('[SES-101] whose connection was replaced meanwhile is no acceptance; and one delivery has one at most', async () => {
    await attach(desk, 's1');
    desk.host = async () => {
      await attach(desk, 's1');
      return accepted;
    };
    const request = letter(toSession());
    refused(await post(desk, request));
    expect(desk.counts().host_accept).toBe(0);
    desk.host = () => accepted;
    const { delivery_id } = await posted(desk, request);
    const [row] = desk.rows('SELECT attempt_id, accepted_at FROM host_accept');
    const [attempt] = desk.rows(
      `SELECT attempt_id, finished_at FROM attempt WHERE state = 'adapter_returned'`,
    );
    expect(row).toEqual({ attempt_id: attempt?.attempt_id, accepted_at: attempt?.finished_at });
    const second = desk.store.write((tx) => {
      const other = { attempt_id: 'att_x', delivery_id, connection_id: connectionOf() };
      tx.attempts.start({ ...other, router_instance: 'run_1', at: 'now' });
      const content = { content: 'notice', adapter_kind: 'acp', receipt: '{}', accepted_at: 'now' } as const;
      tx.attempts.accept({ host_accept_id: 'acc_x', delivery_id, attempt_id: 'att_x', ...content });
    });
    await expect(second).rejects.toThrow(/UNIQUE/);
    expect(desk.counts()).toMatchObject({ host_accept: 1, attempt: 2 });
  });

  it('[SES-101] and its acceptance are finished in one transaction', async () => {
    await attach(desk, 's1');
    const { delivery_id } = await posted(desk, { status: 'result' });
    desk.onNotify = () => ({ delivered: false });
    const other = await posted(desk);
    expect(attempts()).toHaveLength(1);
    const { database, store } = failingStore(desk);
    desk.host = () => {
      database.left = 2;
      return accepted;
    };
    await desk.clock.advance(30_000);
    const told = dispatch({ ...desk.board, store }, 'shop', other.delivery_id);
    await settle();
    expect(database.left).toBe(0);
    expect(desk.rows('SELECT delivery_id FROM host_accept')).toEqual([{ delivery_id }]);
    expect(attempts()[1]).toMatchObject({ state: 'started', finished: 0 });
    await desk.clock.advance(1_000);
    expect(await told).toMatchObject({ delivered: true });
    expect(desk.counts().host_accept).toBe(2);
  });

  const connectionOf = () => String(desk.rows('SELECT connection_id FROM connection')[0]?.connection_id);

  it('[SES-090] hands over a notice: the routing of the message, and no body', async () => {
    await attach(desk, 's1');
    const over = toSession({
      payload: 'a secret body',
      correlation_id: 'c',
      reply_to: 'r',
      task_id: 't',
      status: 'result',
      privacy: 'team',
    });
    const sent = await posted(desk, over);
    const {
      privacy: _,
      delivery_state: __,
      recipient_presence: ___,
      native_delivery: ____,
      ...routing
    } = sent;
    const [reservation] = desk.rows('SELECT notification_id FROM reservation');
    expect(desk.handed[0]).toMatchObject({
      content: 'notice',
      session_id: 's1',
      principal_id: 'bob',
      project: 'shop',
    });
    expect(desk.handed[0]?.envelope).toEqual({
      type: 'postbell_message_notice',
      ...reservation,
      ...routing,
      untrusted: true,
    });
    expect(JSON.stringify(desk.handed)).not.toContain('secret');
    await posted(desk, toSession());
    expect(desk.handed[1]?.envelope).toMatchObject({ ...reservation });
    await desk.clock.advance(30_000);
    await posted(desk, { intended_session: 's1' });
    const [, next] = desk.rows('SELECT notification_id FROM reservation ORDER BY seq');
    expect(next).not.toEqual(reservation);
    expect(desk.handed[2]?.envelope).toMatchObject({ ...next, intended_session: 's1' });
  });

  it('of an unknown delivery, or one of another project, is not made', async () => {
    await attach(desk, 's1');
    const sent = await posted(desk, { status: 'update' });
    for (const [project, id] of [
      ['bank', sent.delivery_id],
      ['shop', 'dlv_unknown'],
    ] as const)
      expect(await dispatch(desk.board, project, id)).toEqual({
        delivered: false,
        reason: 'delivery_not_found',
      });
    await settle();
    expect(attempts()).toEqual([]);
  });
});
