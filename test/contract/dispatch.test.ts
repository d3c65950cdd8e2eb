// Handing over: which live session gets a delivery, and how its sender is answered.

import { beforeEach, describe, expect, it } from 'vitest';
import { acknowledge } from '../../src/mailbox/acknowledge.ts';
import { Fault } from '../../src/protocol/errors.ts';
import { disconnect } from '../../src/sessions/disconnect.ts';
import { dispatch } from '../../src/sessions/dispatch.ts';
import type { HostOutcome } from '../../src/sessions/switchboard.ts';
import {
  accepted,
  attach,
  letter,
  ok,
  openScene,
  post,
  posted,
  refused,
  type Scene,
  sessionCaller,
} from './desk.ts';

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
const handedTo = () => desk.handed.map(({ session_id }) => session_id);

describe('a delivery to a principal', () => {
  it('[SES-093] goes to the newest live connection of the principal that has a bell, after its checkpoint', async () => {
    await posted(desk);
    await attach(desk, 's1');
    await attach(desk, 's2');
    await attach(desk, 'deaf', { bell: 'none' });
    await attach(desk, 'carols', { principal_id: 'carol' });
    await attach(desk, 'far', { project: 'bank' });
    const old = desk.rows('SELECT delivery_id FROM delivery')[0]?.delivery_id as string;
    expect(await dispatch(desk.board, 'shop', old)).toEqual({
      delivered: false,
      reason: 'before_checkpoint',
    });
    await posted(desk);
    expect(handedTo()).toEqual(['s2']);
    await posted(desk, { intended_session: 's1' });
    expect(handedTo()).toEqual(['s2', 's1']);
    await attach(desk, 's2', { lease_ms: 1 });
    await desk.clock.advance(31_000);
    await posted(desk);
    expect(handedTo()).toEqual(['s2', 's1', 's1']);
    for (const newest of ['s2', 's1']) {
      await attach(desk, newest);
      await desk.clock.advance(31_000);
      await posted(desk);
      expect(handedTo().at(-1)).toBe(newest);
    }
  });

  it.each([
    ['not here', 'not_live'],
    ['carols', 'not_live'],
    ['far', 'not_live'],
    ['deaf', 'no_bell'],
  ])('[SES-093] that is intended for %s goes to nobody: %s', async (intended_session, reason) => {
    await attach(desk, 's1');
    await attach(desk, 'deaf', { bell: 'none' });
    await attach(desk, 'carols', { principal_id: 'carol' });
    await attach(desk, 'far', { project: 'bank' });
    const answers: unknown[] = [];
    desk.onNotify = async ({ project, delivery_id }) => {
      const answer = await dispatch(desk.board, project, delivery_id);
      answers.push(answer);
      return answer;
    };
    await posted(desk, { intended_session });
    expect(answers).toEqual([{ delivered: false, reason }]);
    expect(desk.handed).toEqual([]);
  });

  it('that is intended for one session goes to no other, and stays while that is away', async () => {
    await attach(desk, 's1');
    const s2 = await attach(desk, 's2');
    await posted(desk, { intended_session: 's1' });
    expect(handedTo()).toEqual(['s1']);
    await disconnect(desk.board, s2.connection_id, 'socket_closed');
    const sent = await posted(desk, { intended_session: 's2' });
    expect(handedTo()).toEqual(['s1']);
    expect(desk.rows('SELECT 1 FROM attempt WHERE delivery_id = ?', sent.delivery_id)).toEqual([]);
    expect(desk.rows('SELECT open FROM delivery WHERE delivery_id = ?', sent.delivery_id)).toEqual([
      { open: 1 },
    ]);
  });

  it.each([{ status: 'update' }, { quiet: true }])(
    'that needs no turn is not handed over: %j',
    async (over) => {
      await attach(desk, 's1');
      await posted(desk, over);
      expect(desk.counts()).toMatchObject({ attempt: 0, reservation: 0 });
    },
  );
});

describe('a delivery to an exact session', () => {
  it('[SES-094] goes to the highest live generation of that session, under any of its ids, in its project', async () => {
    await attach(desk, 's1');
    const second = await attach(desk, 's1');
    await attach(desk, 's1', { project: 'bank' });
    const connections: string[] = [];
    desk.host = (_, { connection_id }) => {
      connections.push(connection_id);
      return accepted;
    };
    await posted(desk, toSession());
    await desk.store.write((tx) => tx.identity.link('s1b', 's1'));
    await posted(desk, toSession({ recipient: 's1b' }));
    expect(connections).toEqual([second.connection_id, second.connection_id]);
    const third = await attach(desk, 's1b');
    await posted(desk, toSession());
    expect(connections.at(-1)).toBe(third.connection_id);
    expect(desk.handed.every(({ project }) => project === 'shop')).toBe(true);
  });

  it('[SES-094] goes to the newest of two that were live before their ids were linked', async () => {
    await attach(desk, 'x1');
    await attach(desk, 'x2');
    await desk.store.write((tx) => tx.identity.link('x2', 'x1'));
    for (const recipient of ['x1', 'x2']) await posted(desk, toSession({ recipient }));
    expect(handedTo()).toEqual(['x2', 'x2']);
  });

  it('[MSG-034] fails with the reason why nobody could be asked', async () => {
    await attach(desk, 'deaf', { bell: 'none' });
    const gone = await attach(desk, 'gone');
    await disconnect(desk.board, gone.connection_id, 'socket_closed');
    await attach(desk, 'far', { project: 'bank' });
    const reasonOf = async (recipient: string) => {
      const { code, details } = refused(await post(desk, toSession({ recipient })));
      expect(code).toBe('recipient_unavailable');
      return details?.reason;
    };
    expect(await reasonOf('deaf')).toBe('no_bell');
    expect(await reasonOf('gone')).toBe('not_live');
    expect(await reasonOf('unheard of')).toBe('never_registered');
    expect(await reasonOf('far')).toBe('never_registered');
  });

  it('that needs no turn asks only whether the session lives', async () => {
    await attach(desk, 's1');
    const sent = await posted(desk, toSession({ status: 'update' }));
    expect(sent).toMatchObject({ quieted: 'progress' });
    expect(sent.native_delivery).toBeUndefined();
    expect(refused(await post(desk, toSession({ recipient: 'gone', status: 'update' }))).code).toBe(
      'recipient_unavailable',
    );
    expect(attempts()).toEqual([]);
  });

  it.each<HostOutcome>([
    { outcome: 'rejected', failure_code: 'adapter_rejected' },
    { outcome: 'timeout' },
    { outcome: 'disconnected' },
  ])(
    'is not called unreached where the session took it in while it was rung, which ended with $outcome',
    async (outcome) => {
      await attach(desk, 's1');
      desk.host = async ({ delivery_id }) => {
        const [row] = desk.rows('SELECT message_id FROM delivery WHERE delivery_id = ?', delivery_id);
        const read = [{ sender: 'local', msg_id: String(row?.message_id) }];
        ok(await acknowledge(desk, { project: 'shop', messages: read }, sessionCaller('s1')));
        return outcome;
      };
      const sent = await posted(desk, toSession({ fallback_to_principal: true }));
      expect(sent).toMatchObject({ quieted: 'taken_in', target_kind: 'session' });
      expect([sent.native_delivery, sent.fallback]).toEqual([undefined, undefined]);
      expect(attempts()).toMatchObject([
        { state: outcome.outcome === 'rejected' ? 'adapter_rejected' : 'adapter_failed' },
      ]);
    },
  );

  it.each<[string, HostOutcome]>([
    ['host_outcome_timeout', { outcome: 'timeout' }],
    ['adapter_disconnected', { outcome: 'disconnected' }],
    ['replaced', { outcome: 'disconnected' }],
    ['not_live', accepted],
  ])('is not called unreached where its host was asked and has not refused: %s', async (reason, outcome) => {
    const { connection_id } = await attach(desk, 's1');
    const request = letter(toSession());
    desk.host = async () => {
      if (reason === 'replaced') await disconnect(desk.board, connection_id, 'superseded');
      if (reason === 'not_live') await desk.clock.advance(24 * 3_600_000);
      return outcome;
    };
    const doubt = `it is not known whether the session was reached (${reason}); the message is kept as`;
    const refusal = refused(await post(desk, request));
    expect([refusal.message, refusal.details?.reason]).toEqual([expect.stringContaining(doubt), reason]);
    // That it was asked once is known also when it is tried again.
    await disconnect(desk.board, connection_id, 'adapter_disconnect');
    const again = refused(await post(desk, request));
    expect(again.message).toContain('it is not known whether the session was reached (not_live)');
    const other = refused(await post(desk, toSession()));
    expect(other.message).toContain('the session was not reached (not_live)');
  });

  it('[MSG-042] is tried again under its key, and answered by the acceptance once there is one', async () => {
    const request = letter(toSession());
    const failed = refused(await post(desk, request)).details;
    await attach(desk, 's1');
    const first = await posted(desk, request);
    expect(first).toMatchObject({ ...pick(failed), native_delivery: { status: 'native_accepted' } });
    expect((await posted(desk, request)).native_delivery).toEqual(first.native_delivery);
    const receipt = [{ sender: 'local', msg_id: first.message_id }];
    ok(await acknowledge(desk, { project: 'shop', messages: receipt }, sessionCaller('s1')));
    const later = await posted(desk, request);
    expect(later.native_delivery).toEqual(first.native_delivery);
    expect(later.quieted).toBeUndefined();
    expect(desk.handed).toHaveLength(1);
    const unheard = letter(toSession({ recipient: 's2' }));
    const kept = refused(await post(desk, unheard)).details as { message_id: string };
    const taken = [{ sender: 'local', msg_id: kept.message_id }];
    ok(await acknowledge(desk, { project: 'shop', messages: taken }, sessionCaller('s2')));
    for (const live of [false, true]) {
      if (live) await attach(desk, 's2');
      const answer = await posted(desk, unheard);
      expect(answer).toMatchObject({ ...pick(kept), quieted: 'taken_in' });
      expect(answer.native_delivery).toBeUndefined();
    }
    desk.onNotify = async ({ project, delivery_id }) => {
      const [row] = desk.rows('SELECT message_id FROM delivery WHERE delivery_id = ?', delivery_id);
      const quick = [{ sender: 'local', msg_id: String(row?.message_id) }];
      ok(await acknowledge(desk, { project, messages: quick }, sessionCaller('s2')));
      return dispatch(desk.board, project, delivery_id);
    };
    expect(await posted(desk, toSession({ recipient: 's2' }))).toMatchObject({ quieted: 'taken_in' });
    expect(desk.handed).toHaveLength(1);
    expect(attempts()).toHaveLength(1);
    // What the store knows needs no router; of the session nothing is known then.
    desk.onNotify = () => Promise.reject(new Fault('router_unreachable', 'none'));
    const unasked = await posted(desk, unheard);
    expect(unasked).toMatchObject({ quieted: 'taken_in', recipient_presence: 'not_checked' });
    const accepted = await posted(desk, request);
    expect(accepted.native_delivery).toEqual(first.native_delivery);
    expect(accepted.recipient_presence).toBe('not_checked');
    const unreadable = (): never => {
      throw new Fault('store_unreadable', 'no');
    };
    const gone = refused(await post({ ...desk, store: { ...desk.store, read: unreadable } }, unheard));
    expect(gone).toMatchObject({ code: 'router_unreachable', details: pick(kept) });
  });
});

const pick = (details: object | undefined) => {
  const { message_id, delivery_id, event_id } = details as Record<string, string>;
  return { message_id, delivery_id, event_id };
};
