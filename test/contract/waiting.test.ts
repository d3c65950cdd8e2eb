// What waits for whom: one query, one fixture for each of its clauses. Alice writes; s1 and s2 are sessions of Bob.

import { beforeEach, describe, expect, it } from 'vitest';
import { ack } from '../../src/mailbox/ack.ts';
import type { Caller } from '../../src/mailbox/desk.ts';
import { fetchMessage } from '../../src/mailbox/fetch.ts';
import { intake } from '../../src/mailbox/intake.ts';
import { receive } from '../../src/mailbox/receive.ts';
import { disconnect } from '../../src/sessions/disconnect.ts';
import { dispatch } from '../../src/sessions/dispatch.ts';
import { register } from '../../src/sessions/register.ts';
import {
  alice,
  attach,
  ok,
  openScene,
  post,
  posted,
  refused,
  registration,
  type Scene,
  sessionCaller,
} from './desk.ts';

let desk: Scene;
beforeEach(async () => {
  desk = await openScene();
});

/** Payloads that wait for this session of Bob. */
const seenBy = (session: string, project = 'shop'): unknown[] =>
  ok(receive(desk, { project }, sessionCaller(session))).messages.map(({ payload }) => payload);

/** Payloads that a caller without a session sees in Bob's inbox. */
const seenByNobody = (caller: Caller = alice): unknown[] =>
  ok(receive(desk, { project: 'shop', recipient: 'bob' }, caller)).messages.map(({ payload }) => payload);

/** Stored, though no router hands it over. */
const toSession = (recipient: string, payload: string) =>
  post(desk, { target_kind: 'session', recipient, payload });

describe('mail for a principal', () => {
  it('[MSG-048] reaches every session of that principal', async () => {
    await attach(desk, 's1');
    await attach(desk, 's2');
    await posted(desk, { payload: 'for all' });
    expect(desk.rows('SELECT intended_session FROM delivery')).toEqual([{ intended_session: null }]);
    expect([seenBy('s1'), seenBy('s2'), seenByNobody()]).toEqual([['for all'], ['for all'], ['for all']]);
    expect(ok(receive(desk, { project: 'shop' }, sessionCaller('s3', 'carol'))).messages).toEqual([]);
  });

  it('that is intended for one session waits for that one alone, under any of its ids', async () => {
    await attach(desk, 's1');
    await attach(desk, 's2');
    await posted(desk, { payload: 'for s1', intended_session: 's1' });
    await desk.store.write((tx) => tx.identity.link('s1b', 's1'));
    expect([seenBy('s1'), seenBy('s1b')]).toEqual([['for s1'], ['for s1']]);
    expect([seenBy('s2'), seenByNobody(), seenBy('unheard of')]).toEqual([[], [], []]);
  });
});

describe('mail intended for a session', () => {
  it('[SES-028] stays with it when it comes back under another principal: shown and handed over', async () => {
    const first = await attach(desk, 's1');
    await disconnect(desk.board, first.connection_id, 'adapter_disconnect');
    const sent = await posted(desk, { intended_session: 's1' });
    await posted(desk);
    await attach(desk, 's1', { principal_id: 'carol', bell: 'channel', adapter_kind: 'claude-channel' });
    const presence = desk.rows('SELECT principal_id, bell FROM connection ORDER BY seq');
    expect(presence).toEqual([
      { principal_id: 'bob', bell: 'listener' },
      { principal_id: 'carol', bell: 'channel' },
    ]);
    const carol = sessionCaller('s1', 'carol');
    const ids = (over = {}) =>
      ok(receive(desk, { project: 'shop', ...over }, carol)).messages.map(({ message_id }) => message_id);
    expect(ids()).toEqual([sent.message_id]);
    expect(ids({ recipient: 'carol' })).toEqual([]);
    const later = await posted(desk, { intended_session: 's1', payload: 'later' });
    await dispatch(desk.board, 'shop', later.delivery_id);
    expect(desk.handed.map(({ session_id }) => session_id)).toEqual(['s1']);
    const live = await post(desk, {});
    expect(ok(live).message_id).toBeDefined();
    expect(await attachAs('dave')).toBe('session_identity_conflict');
  });

  async function attachAs(principal_id: string): Promise<string> {
    return refused(await register(desk.board, registration('s1', { principal_id, bell: 'channel' }))).code;
  }
});

describe('the query', () => {
  it('[MSG-116] returns mail to R, mail intended for S, and mail to live sessions of R in the project', async () => {
    await attach(desk, 's1');
    await attach(desk, 's9', { principal_id: 'carol' });
    await desk.store.write((tx) => tx.identity.link('s1b', 's1'));
    await posted(desk, { payload: 'to R' });
    await posted(desk, { payload: 'to R, meant for S', intended_session: 's1b' });
    await toSession('s1', 'to the session');
    await posted(desk, { recipient: 'carol', payload: 'to another principal' });
    await posted(desk, { project: 'bank', payload: 'to R in another project' });
    await posted(desk, { payload: 'meant for another', intended_session: 's2' });
    await toSession('s9', 'to a session of another principal');
    await toSession('s7', 'to a session that nobody registered');
    expect(seenBy('s1')).toEqual(['to R', 'to R, meant for S', 'to the session']);
    for (const caller of [sessionCaller('s1'), alice])
      for (const message of ok(receive(desk, { project: 'shop', recipient: 'bob' }, caller)).messages)
        expect(message.untrusted).toBe(true);
    expect(seenByNobody()).toEqual(['to R', 'to the session']);
    expect(seenBy('s1', 'bank')).toEqual(['to R in another project']);
  });

  it('[MSG-117] shows a known session no mail of its sibling; unknown, every live session of R counts', async () => {
    await attach(desk, 's1');
    await attach(desk, 's2');
    await desk.store.write((tx) => tx.identity.link('s1b', 's1'));
    await toSession('s1', 'to s1');
    await toSession('s1b', 'to s1 under its new id');
    expect(seenBy('s2')).toEqual([]);
    expect(seenBy('s1b')).toEqual(['to s1', 'to s1 under its new id']);
    expect(seenByNobody()).toEqual(['to s1', 'to s1 under its new id']);
  });

  it('[MSG-118] surfaces no mail of a session that has gone, or is of another principal or project', async () => {
    const gone = await attach(desk, 'gone');
    await attach(desk, 'expired', { lease_ms: 1_000 });
    await attach(desk, 'other-principal', { principal_id: 'carol' });
    await attach(desk, 'other-project', { project: 'bank' });
    await attach(desk, 'here');
    for (const id of ['gone', 'expired', 'other-principal', 'other-project', 'here']) await toSession(id, id);
    expect(seenByNobody()).toEqual(['gone', 'expired', 'here']);
    await disconnect(desk.board, gone.connection_id, 'socket_closed');
    await desk.clock.advance(1_000);
    expect(seenByNobody()).toEqual(['here']);
  });

  it('[MSG-119] does not ask whether the session itself is live', async () => {
    await attach(desk, 's1', { lease_ms: 1_000 });
    await toSession('s1', 'still mine');
    await desk.clock.advance(5_000);
    expect(seenBy('s1')).toEqual(['still mine']);
    expect(seenByNobody()).toEqual([]);
  });

  it('[MSG-123] matches the exact recipient, and shows nothing of any other', async () => {
    await posted(desk, { payload: 'one' });
    await attach(desk, 's1');
    const seen = () => [alice, sessionCaller('s1')].map((caller) => receive(desk, asked, caller));
    const asked = { project: 'shop', recipient: 'bob' };
    const before = JSON.stringify(seen());
    for (const recipient of ['Bob', 'bob ii', 'bob%', '*', 'carol', 's1']) await posted(desk, { recipient });
    await posted(desk, { project: 'bank', recipient: 'carol' });
    await posted(desk, { intended_session: 's2' });
    await toSession('s2', 'to another session');
    expect(JSON.stringify(seen())).toBe(before);
  });
});

describe('waiting', () => {
  it('is ended by intake alone, not by a fetch, a bare ack or a host that accepted', async () => {
    await attach(desk, 's1');
    const { message_id, delivery_id } = await posted(desk, { payload: 'open' });
    const scope = { project: 'shop', recipient: 'bob', message_id };
    const seen = () => [seenBy('s1'), seenByNobody()];
    ok(fetchMessage(desk, scope));
    expect(seen()).toEqual([['open'], ['open']]);
    ok(await ack(desk, { ...scope, idempotency_key: 'k' }, sessionCaller('s1')));
    expect(seen()).toEqual([['open'], ['open']]);
    expect(await dispatch(desk.board, 'shop', delivery_id)).toMatchObject({ delivered: true });
    expect(seen()).toEqual([['open'], ['open']]);
    ok(await intake(desk, { ...scope, state: 'fetched', idempotency_key: 'k' }, sessionCaller('s1')));
    expect(seen()).toEqual([[], []]);
  });
});
