// Receipts: separate, explicit, idempotent; and who may record them.

import { beforeEach, describe, expect, it } from 'vitest';
import { ack } from '../../src/mailbox/ack.ts';
import type { Caller } from '../../src/mailbox/desk.ts';
import { fetchMessage } from '../../src/mailbox/fetch.ts';
import { intake } from '../../src/mailbox/intake.ts';
import { poll } from '../../src/mailbox/poll.ts';
import { receipts } from '../../src/mailbox/receipts.ts';
import { readFields } from '../../src/protocol/fields.ts';
import { ackFields, intakeFields } from '../../src/protocol/requests.ts';
import { dispatch } from '../../src/sessions/dispatch.ts';
import { alice, attach, ok, openScene, post, posted, refused, type Scene, sessionCaller } from './desk.ts';

let desk: Scene;
beforeEach(async () => {
  desk = await openScene();
});

const bob = sessionCaller('s1');
const scopeOf = (message_id: string, recipient = 'bob') => ({ project: 'shop', recipient, message_id });
const factsOf = (message_id: string, recipient = 'bob') => ok(receipts(desk, scopeOf(message_id, recipient)));
const take = (message_id: string, caller: Caller = bob, over = {}) =>
  intake(desk, { ...scopeOf(message_id), state: 'fetched', idempotency_key: 'k', ...over }, caller);
const confirm = (message_id: string, caller: Caller = bob, over = {}) =>
  ack(desk, { ...scopeOf(message_id), idempotency_key: 'k', ...over }, caller);

describe('a receipt', () => {
  it('stands alone: intake writes no ack, and ack no intake', async () => {
    const a = await posted(desk);
    const b = await posted(desk);
    ok(await take(a.message_id));
    ok(await confirm(b.message_id));
    expect(factsOf(a.message_id).receipts.map(({ receipt_kind }) => receipt_kind)).toEqual(['intake']);
    expect(factsOf(a.message_id).delivery_state).toBe('receiver_stored');
    expect(factsOf(b.message_id).receipts.map(({ receipt_kind }) => receipt_kind)).toEqual(['ack']);
    expect(factsOf(b.message_id).delivery_state).toBe('receiver_acknowledged');
  });

  it('has the recipient as its actor, and the calling session beside it', async () => {
    const { message_id } = await posted(desk);
    expect(ok(await take(message_id, sessionCaller('s1')))).toEqual({
      receipt_id: expect.stringMatching(/^rcp_/),
      receipt_kind: 'intake',
      value: 'fetched',
      source: 'receipt',
      actor: 'bob',
      idempotency_key: 'k',
      caller_session: 's1',
      recorded_at: '2026-03-01T12:00:00.000Z',
    });
    expect(ok(await confirm(message_id, alice))).not.toHaveProperty('caller_session');
    for (const field of ['actor', 'session', 'caller_session', 'recorded_at'])
      for (const fields of [intakeFields, ackFields])
        expect(refused(readFields(fields, { ...scopeOf('m'), [field]: 'x' })).details).toEqual({ field });
    for (const state of ['read', 'Fetched', '', null, 'accepted'])
      expect(refused(readFields(intakeFields, { ...scopeOf('m'), idempotency_key: 'k', state })).code).toBe(
        'invalid_request',
      );
  });

  it('is the same one under its own key, a conflict with another value, another one under another key', async () => {
    const { message_id } = await posted(desk);
    const first = ok(await take(message_id));
    await desk.clock.advance(5_000);
    expect(ok(await take(message_id, sessionCaller('s2')))).toEqual(first);
    expect(refused(await take(message_id, bob, { state: 'ingested' }))).toMatchObject({
      code: 'idempotency_conflict',
      details: { receipt_id: first.receipt_id },
    });
    const second = ok(await take(message_id, bob, { state: 'ingested', idempotency_key: 'k2' }));
    expect(second.receipt_id).not.toBe(first.receipt_id);
    ok(await confirm(message_id));
    expect(factsOf(message_id).receipts).toHaveLength(3);
    const other = await posted(desk);
    expect(ok(await take(other.message_id)).receipt_id).not.toBe(first.receipt_id);
  });

  it('[MSG-098] needs no acceptance by a host; one that names an acceptance names that of its own delivery', async () => {
    await attach(desk, 's1');
    const a = await posted(desk);
    const b = await posted(desk);
    ok(await confirm(a.message_id));
    for (const { delivery_id } of [a, b]) {
      expect(await dispatch(desk.board, 'shop', delivery_id)).toMatchObject({ delivered: true });
      await desk.clock.advance(400_000);
      await attach(desk, 's1');
    }
    const ids = desk
      .rows('SELECT host_accept_id FROM host_accept ORDER BY seq')
      .map((row) => String(row.host_accept_id));
    const [ofA, ofB] = ids as [string, string];
    const native = (host_accept_id: string) =>
      confirm(a.message_id, bob, { host_accept_id, idempotency_key: 'native' });
    for (const wrong of [ofB, 'unknown']) expect(refused(await native(wrong)).code).toBe('not_available');
    expect(ok(await native(ofA))).toMatchObject({ receipt_kind: 'ack', host_accept_id: ofA });
    expect(refused(await confirm(a.message_id, bob, { idempotency_key: 'native' })).code).toBe(
      'idempotency_conflict',
    );
    const other = await posted(desk, { recipient: 'carol' });
    const elsewhere = { ...scopeOf(other.message_id, 'carol'), idempotency_key: 'k', host_accept_id: ofA };
    expect(refused(await ack(desk, elsewhere, alice)).code).toBe('not_available');
  });
});

describe('who may record intake', () => {
  const callers: [string, Caller][] = [
    ['the session itself', sessionCaller('s1')],
    ['the session under another id', sessionCaller('s1b')],
    ['another registered session', sessionCaller('s2')],
    ['a session that nobody registered', sessionCaller('unheard of')],
    ['a session registered in another project', sessionCaller('far')],
    ['no session', alice],
  ];
  const allowed = { plain: '111111', intended: '110000', exact: '110111' };

  it.each(Object.entries(allowed))('[MSG-113] of a message that is %s', async (kind, expected) => {
    await attach(desk, 's1');
    await attach(desk, 's2');
    await attach(desk, 'far', { project: 'bank' });
    await desk.store.write((tx) => tx.identity.link('s1b', 's1'));
    const over = {
      plain: {},
      intended: { intended_session: 's1' },
      exact: { target_kind: 'session', recipient: 's1' },
    }[kind];
    let outcome = '';
    for (const [, caller] of callers) {
      await post(desk, over);
      const [row] = desk.rows('SELECT message_id, recipient FROM delivery ORDER BY seq DESC LIMIT 1');
      const { message_id, recipient } = row as { message_id: string; recipient: string };
      const before = desk.counts().receipt;
      const result = await take(message_id, caller, { recipient });
      outcome += desk.counts().receipt === before ? '0' : '1';
      const waits = desk.rows('SELECT open FROM delivery WHERE message_id = ?', message_id);
      expect(waits).toEqual([{ open: outcome.endsWith('0') ? 1 : 0 }]);
      if (outcome.endsWith('0')) expect(refused(result).code).toBe('intended_for_other_session');
      ok(await ack(desk, { ...scopeOf(message_id, recipient), idempotency_key: 'b' }, caller));
      ok(receipts(desk, scopeOf(message_id, recipient)));
      ok(await poll(desk, { project: 'shop', recipient }));
      ok(
        fetchMessage(desk, {
          ...scopeOf(message_id, recipient),
          target_kind: kind === 'exact' ? 'session' : 'principal',
        }),
      );
    }
    expect(outcome).toBe(expected);
  });
});

describe('fetching', () => {
  it('[MSG-078] answers the exact scope only, and never says what did not fit', async () => {
    const { message_id } = await posted(desk);
    await post(desk, { target_kind: 'session', recipient: 's1' });
    const session = String(
      desk.rows(`SELECT message_id FROM delivery WHERE target_kind = 'session'`)[0]?.message_id,
    );
    const right = scopeOf(message_id);
    const whole = { project: 'shop', sender: 'alice', payload: 'hello bob', untrusted: true };
    expect(ok(fetchMessage(desk, right))).toMatchObject({
      ...whole,
      ...right,
      target_kind: 'principal',
      delivery_id: expect.stringMatching(/^dlv_/),
    });
    const exact = { ...scopeOf(session, 's1'), target_kind: 'session' as const };
    expect(ok(fetchMessage(desk, exact))).toMatchObject({ ...whole, ...exact });
    const unknown = refused(fetchMessage(desk, { ...right, message_id: 'unknown' }));
    expect(unknown.code).toBe('not_available');
    const wrong = [
      { ...right, project: 'bank' },
      { ...right, recipient: 'Bob' },
      { ...right, target_kind: 'session' as const },
      scopeOf(session, 's1'),
      { ...scopeOf(session), target_kind: 'session' as const },
    ];
    for (const scope of wrong) expect(refused(fetchMessage(desk, scope))).toEqual(unknown);
    for (const scope of [
      { ...right, project: 'bank' },
      { ...right, recipient: 'carol' },
    ]) {
      expect(refused(receipts(desk, scope))).toEqual(unknown);
      expect(refused(await intake(desk, { ...scope, state: 'fetched', idempotency_key: 'k' }, bob))).toEqual(
        unknown,
      );
      expect(refused(await ack(desk, { ...scope, idempotency_key: 'k' }, bob))).toEqual(unknown);
    }
  });

  it('[MSG-081] marks the payload as untrusted, and changes nothing', async () => {
    const { message_id } = await posted(desk);
    const before = desk.counts();
    const touches = desk.wake.touches;
    expect(ok(fetchMessage(desk, scopeOf(message_id)))).toMatchObject({
      untrusted: true,
      payload: 'hello bob',
    });
    expect(fetchMessage(desk, scopeOf(message_id))).toEqual(fetchMessage(desk, scopeOf(message_id)));
    expect(desk.counts()).toEqual(before);
    expect(desk.wake.touches).toBe(touches);
  });
});
