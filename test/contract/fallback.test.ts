// A session that refuses, and the same message to its principal in its place.

import { beforeEach, describe, expect, it } from 'vitest';
import { fetchMessage } from '../../src/mailbox/fetch.ts';
import { intake } from '../../src/mailbox/intake.ts';
import { receive } from '../../src/mailbox/receive.ts';
import { type SendAnswer, send } from '../../src/mailbox/send.ts';
import { errorCodes, Fault } from '../../src/protocol/errors.ts';
import { sendFields } from '../../src/protocol/requests.ts';
import { disconnect } from '../../src/sessions/disconnect.ts';
import { dispatch } from '../../src/sessions/dispatch.ts';
import {
  alice,
  attach,
  difference,
  letter,
  ok,
  openScene,
  post,
  read,
  refused,
  type Scene,
  sessionCaller,
} from './desk.ts';
import { failingStore } from './failing.ts';

let desk: Scene;
beforeEach(async () => {
  desk = await openScene();
  desk.onNotify = ({ project, delivery_id }) => dispatch(desk.board, project, delivery_id);
});

const toSession = { recipient: 's1', target_kind: 'session', fallback_to_principal: true };
const fall = async (over = {}) => ok(await post(desk, { ...toSession, ...over }));

/** Bob's session s1, which was there and has gone. */
async function gone(over = {}): Promise<void> {
  const { connection_id } = await attach(desk, 's1', over);
  await disconnect(desk.board, connection_id, 'adapter_disconnect');
}

describe('a fallback', () => {
  it('[MSG-057] is for an exact session only', async () => {
    const before = desk.counts();
    expect(refused(await post(desk, { fallback_to_principal: true }))).toMatchObject({
      code: 'invalid_request',
      details: { field: 'fallback_to_principal' },
    });
    expect(difference(before, desk.counts())).toEqual({});
    expect(ok(await post(desk, { fallback_to_principal: false })).target_kind).toBe('principal');
  });

  it('[MSG-058] is the same message to the principal of the session, meant for that session', async () => {
    await gone();
    const whole = {
      payload: { b: ['hello', null], a: 1 },
      content_type: 'application/json',
      task_id: 't',
      status: 'needs_input',
      correlation_id: 'c',
      reply_to: 'm',
      privacy: 'team',
      expires_at: '2026-03-02T12:00:00.000Z',
    };
    const { fallback, delivery_state, recipient_presence, ...answer } = await fall(whole);
    expect([delivery_state, recipient_presence]).toEqual(['receiver_stored', 'gone']);
    const [stored] = desk.rows(
      'SELECT recipient, target_kind, intended_session FROM delivery WHERE delivery_id = ?',
      answer.delivery_id,
    );
    expect(stored).toEqual({ recipient: 'bob', target_kind: 'principal', intended_session: 's1' });
    const fetched = ({ message_id = '', recipient = '' }, target_kind: 'principal' | 'session') =>
      ok(fetchMessage(desk, { project: 'shop', recipient, message_id, target_kind }));
    const copy = fetched(answer, 'principal');
    const { target_kind, recipient } = copy;
    expect(copy).toMatchObject({ ...answer, ...whole, target_kind: 'principal', recipient: 'bob' });
    const { message_id, delivery_id, event_id, intended_session } = copy;
    const own = { message_id, delivery_id, event_id, intended_session, target_kind, recipient };
    expect({ ...fetched(fallback ?? {}, 'session'), ...own }).toEqual(copy);
  });

  it('[MSG-059, SES-118] names the refused one, whether the session is live now, and a note where it is not', async () => {
    await gone();
    const dead = await fall();
    const [refusedRow] = desk.rows(
      `SELECT message_id, delivery_id FROM delivery WHERE target_kind = 'session'`,
    );
    expect(dead.fallback).toEqual({
      ...refusedRow,
      recipient: 's1',
      target_kind: 'session',
      reason: 'not_live',
      intended_session_connected: false,
      note: expect.stringMatching(
        /only that session can take .* when it next runs; if it has ended for good, send to the principal without intended_session/,
      ),
    });
    await attach(desk, 's1');
    desk.host = () => ({ outcome: 'rejected', failure_code: 'adapter_rejected' });
    const live = await fall();
    expect(live.fallback).toMatchObject({ reason: 'adapter_rejected', intended_session_connected: true });
    expect(live.fallback).not.toHaveProperty('note');
    await desk.clock.advance(60_000);
    expect((await fall()).fallback).toMatchObject({ intended_session_connected: false });
    await desk.store.write((tx) => tx.identity.link('s1b', 's1'));
    await attach(desk, 's1b');
    expect((await fall()).fallback).toMatchObject({ intended_session_connected: true });
  });

  it('[MSG-060] has no principal for a session that never registered, or that cannot be named', async () => {
    const never = refused(await post(desk, { ...toSession, recipient: 'nobody' }));
    expect(never).toMatchObject({ code: 'recipient_unavailable', details: { reason: 'never_registered' } });
    expect(never.message).toMatch(/no session of that id ever registered/);
    for (const adapter_kind of ['acp', 'codex-app-server'] as const) {
      await gone({ adapter_kind, bell: adapter_kind === 'acp' ? 'acp' : 'codex-queue' });
      const unnameable = refused(await post(desk, toSession));
      expect(unnameable).toMatchObject({ code: 'recipient_unavailable', details: { reason: 'not_live' } });
      expect(unnameable.message).toMatch(/no copy for its principal: .* cannot name itself/);
    }
    expect(desk.rows(`SELECT * FROM delivery WHERE target_kind = 'principal'`)).toEqual([]);
  });

  it('[MSG-061] follows no other failure', async () => {
    await attach(desk, 's1');
    const tooLarge = await post(desk, { ...toSession, payload: 'x'.repeat(20_000) });
    expect(refused(tooLarge).code).toBe('native_message_too_large');
    desk.onNotify = () => ({ delivered: false, reason: 'generation_changed' });
    const pinned = await post(desk, { ...toSession, expected_generation: 7 });
    expect(refused(pinned).code).toBe('generation_changed');
    for (const code of errorCodes.filter((one) => one.startsWith('router_'))) {
      desk.onNotify = () => {
        throw new Fault(code, 'none');
      };
      const before = desk.counts();
      expect(refused(await post(desk, toSession)).code).toBe(code);
      expect(difference(before, desk.counts()).message).toBe(1);
    }
    expect(desk.rows(`SELECT * FROM delivery WHERE target_kind = 'principal'`)).toEqual([]);
  });

  it('is not made of a message that has expired meanwhile, and a fault of the store says what is kept', async () => {
    await attach(desk, 's1');
    desk.host = () =>
      new Promise((resolve) => desk.clock.after(10_000, () => resolve({ outcome: 'timeout' })));
    const sending = post(desk, { ...toSession, expires_at: '2026-03-01T12:00:05Z' });
    await desk.clock.advance(10_000);
    const late = refused(await sending);
    expect(late.code).toBe('recipient_unavailable');
    expect(late.message).toMatch(/not known whether the session was reached/);
    expect(desk.rows(`SELECT * FROM delivery WHERE target_kind = 'principal'`)).toEqual([]);
    const { database, store } = failingStore(desk);
    desk.host = () => ({ outcome: 'rejected', failure_code: 'adapter_rejected' });
    database.left = 6;
    const failed = refused(await post({ ...desk, store }, toSession));
    expect(failed.code).toBe('recipient_unavailable');
    expect(failed.message).toMatch(
      /the message is kept as msg_\w+; no copy for its principal: store_unwritable, /,
    );
    const { message_id } = failed.details as { message_id: string };
    expect(desk.rows('SELECT message_id FROM message WHERE message_id = ?', message_id)).toHaveLength(1);
  });

  it('[MSG-062] keeps the refused delivery: the session that returns sees both, and takes each in by itself', async () => {
    await gone();
    const { message_id, fallback } = await fall();
    await attach(desk, 's1');
    const caller = sessionCaller('s1');
    const waiting = () =>
      ok(receive(desk, { project: 'shop' }, caller)).messages.map((one) => one.message_id);
    expect(new Set(waiting())).toEqual(new Set([message_id, fallback?.message_id]));
    ok(
      await intake(
        desk,
        { project: 'shop', recipient: 'bob', message_id, idempotency_key: 'i', state: 'ingested' },
        caller,
      ),
    );
    expect(waiting()).toEqual([fallback?.message_id]);
  });

  it('[MSG-063] is what every retry under its key answers, and hands nothing off', async () => {
    await gone();
    const request = read(sendFields, letter(toSession));
    const first = ok(await send(desk, request, alice));
    const stored = desk.counts();
    expect(ok(await send(desk, request, alice)).message_id).toBe(first.message_id);
    expect(difference(stored, desk.counts())).toEqual({});
    await attach(desk, 's1');
    const before = desk.counts();
    const notified = desk.notified.length;
    const { fallback_to_principal: _, ...plain } = request;
    for (const again of [request, plain, { ...request, fallback_to_principal: false }]) {
      const answer: SendAnswer = ok(await send(desk, again, alice));
      expect(answer.message_id).toBe(first.message_id);
      expect(answer.delivery_id).toBe(first.delivery_id);
      expect(answer.fallback).toMatchObject({ reason: 'not_live', intended_session_connected: true });
    }
    expect(difference(before, desk.counts())).toEqual({});
    expect(desk.notified).toHaveLength(notified);
    expect(desk.handed).toEqual([]);
    const racing = await Promise.all([request, request].map((one) => send(desk, one, alice)));
    for (const one of racing) expect(ok(one).message_id).toBe(first.message_id);
  });

  it('[MSG-064] is stored under a reserved prefix, which no key of a caller may have', async () => {
    await gone();
    await fall({ idempotency_key: 'mine' });
    expect(desk.rows('SELECT idempotency_key FROM idempotency ORDER BY rowid')).toEqual([
      { idempotency_key: 'mine' },
      { idempotency_key: 'postbell-fallback:mine' },
    ]);
    const before = desk.counts();
    expect(refused(await post(desk, { idempotency_key: 'postbell-fallback:x' }))).toMatchObject({
      code: 'invalid_request',
      details: { field: 'idempotency_key' },
    });
    expect(difference(before, desk.counts())).toEqual({});
  });

  it('[SES-117] goes to the principal of the latest registration of that session in the project, live or not', async () => {
    await gone({ principal_id: 'first' });
    await gone({ principal_id: 'last' });
    await gone({ principal_id: 'elsewhere', project: 'other' });
    expect((await fall()).recipient).toBe('last');
    await desk.store.write((tx) => tx.identity.link('s2', 's1'));
    expect((await fall({ recipient: 's2' })).recipient).toBe('last');
    await attach(desk, 's2', { principal_id: 'now' });
    desk.host = () => ({ outcome: 'rejected', failure_code: 'adapter_rejected' });
    for (const recipient of ['s1', 's2']) expect((await fall({ recipient })).recipient).toBe('now');
  });
});
