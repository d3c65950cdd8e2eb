// Which registration an exact send reaches: the one its sender expects, the one that came after, or none.

import { beforeEach, describe, expect, it } from 'vitest';
import { receive } from '../../src/mailbox/receive.ts';
import { disconnect } from '../../src/sessions/disconnect.ts';
import { discover } from '../../src/sessions/discover.ts';
import { dispatch } from '../../src/sessions/dispatch.ts';
import type { HostOutcome } from '../../src/sessions/switchboard.ts';
import { attach, letter, ok, openScene, post, posted, refused, type Scene, sessionCaller } from './desk.ts';
import { type Exchange, openExchange } from './exchange.ts';

let desk: Scene;
beforeEach(async () => {
  desk = await openScene();
  desk.onNotify = ({ project, delivery_id, expected_generation }) =>
    dispatch(desk.board, project, delivery_id, expected_generation);
});

const toSession = (over: Record<string, unknown> = {}) => ({
  target_kind: 'session',
  recipient: 's1',
  ...over,
});
const failure = (result: unknown) => {
  const { code, details } = refused(result);
  return [code, details?.reason];
};

describe('an expected generation', () => {
  it('[MSG-046] that is not the live one hands nothing over, and the message stays', async () => {
    await attach(desk, 's1');
    const [card] = discover(desk.board, { project: 'shop' });
    const looked = { expected_generation: card?.generation };
    ok(await post(desk, toSession(looked)));
    await attach(desk, 's1');
    const request = letter(toSession());
    const { code, details } = refused(await post(desk, { ...request, ...looked }));
    expect(code).toBe('generation_changed');
    expect(await openExchange(desk).notify(String(details?.delivery_id), looked)).toEqual({
      delivered: false,
      reason: 'generation_changed',
    });
    expect(desk.handed).toHaveLength(1);
    expect(desk.counts().attempt).toBe(1);
    const { messages } = ok(receive(desk, { project: 'shop' }, sessionCaller('s1')));
    expect(messages.map(({ message_id }) => message_id)).toContain(details?.message_id);
    // What was accepted is told whatever is expected then.
    for (const expected_generation of [2, 7]) {
      const answer = await post(desk, { ...request, expected_generation });
      expect(ok(answer).native_delivery?.status).toBe('native_accepted');
    }
    expect(desk.handed).toHaveLength(2);
  });

  it('[MSG-046] is a positive whole number, and for an exact session only', async () => {
    await attach(desk, 's1');
    const field = 'expected_generation';
    const before = desk.counts();
    for (const over of [
      ...[0, -1, 1.5, '1', true].map((wrong) => toSession({ [field]: wrong })),
      { [field]: 1 },
    ])
      expect(refused(await post(desk, over))).toMatchObject({ code: 'invalid_request', details: { field } });
    expect(desk.counts()).toEqual(before);
    ok(await post(desk, toSession({ [field]: 1 })));
  });

  it('is looked at before liveness, and after what nobody ever registered', async () => {
    const sent = async (over = {}) =>
      failure(await post(desk, toSession({ expected_generation: 1, ...over })));
    expect(await sent()).toEqual(['recipient_unavailable', 'never_registered']);
    const first = await attach(desk, 's1');
    await disconnect(desk.board, first.connection_id, 'socket_closed');
    expect(await sent()).toEqual(['recipient_unavailable', 'not_live']);
    const second = await attach(desk, 's1');
    expect((await sent())[0]).toBe('generation_changed');
    await disconnect(desk.board, second.connection_id, 'socket_closed');
    expect((await sent())[0]).toBe('generation_changed');
    expect((await sent({ payload: 'x'.repeat(20_000) }))[0]).toBe('native_message_too_large');
  });

  it('of an id before /clear is not that of the session which came after it', async () => {
    await attach(desk, 's1');
    await desk.store.write((tx) => tx.identity.link('s1b', 's1'));
    await attach(desk, 's1b');
    const first = { expected_generation: 1 };
    expect(failure(await post(desk, toSession(first)))[0]).toBe('generation_changed');
    expect(ok(await post(desk, toSession({ recipient: 's1b', ...first }))).native_delivery).toBeDefined();
    expect(ok(await post(desk, toSession())).native_delivery).toBeDefined();
  });
});

describe('a result of discovery', () => {
  it('[SES-062] ends with its lease, its connection and its generation: a send after that fails closed', async () => {
    const { lease_ms, generation } = await attach(desk, 's1');
    await desk.clock.advance(lease_ms);
    const before = desk.handed.length;
    expect(failure(await post(desk, toSession()))).toEqual(['recipient_unavailable', 'not_live']);
    const again = await attach(desk, 's1');
    const looked = { expected_generation: generation };
    expect(failure(await post(desk, toSession(looked)))[0]).toBe('generation_changed');
    await disconnect(desk.board, again.connection_id, 'socket_closed');
    expect(failure(await post(desk, toSession()))).toEqual(['recipient_unavailable', 'not_live']);
    expect(desk.handed).toHaveLength(before);
  });

  it('[MSG-047] names a session whose card may be gone by the time of the send: it fails, and the message stays', async () => {
    await attach(desk, 's1');
    const [card] = discover(desk.board, { project: 'shop' });
    const live = desk.store.read((tx) => tx.sessions.live('shop', ['s1'], desk.clock.nowMs()));
    await disconnect(desk.board, String(live?.connection_id), 'adapter_disconnect');
    expect(discover(desk.board, { project: 'shop' })).toEqual([]);
    const { code, details } = refused(
      await post(desk, toSession({ recipient: card?.session_id, payload: 'kept' })),
    );
    expect(code).toBe('recipient_unavailable');
    const { messages } = ok(receive(desk, { project: 'shop' }, sessionCaller('s1')));
    expect(messages).toMatchObject([{ message_id: details?.message_id, payload: 'kept' }]);
  });
});

describe('a session that registers again', () => {
  let router: Exchange;
  beforeEach(() => {
    router = openExchange(desk);
    desk.onNotify = ({ delivery_id }) => router.notify(delivery_id);
  });

  it('[SES-046] is the same session: a retry reaches its new generation, and nothing is replayed to it', async () => {
    const first = await router.join('s1');
    const request = letter(toSession());
    const sent = post(desk, request);
    await desk.clock.advance(10_000);
    expect(failure(await sent)).toEqual(['recipient_unavailable', 'host_outcome_timeout']);
    await first.leave();
    await desk.clock.advance(60_000);
    const second = await router.join('s1');
    await desk.clock.advance(300_000 - 60_000);
    expect(second.frames).toEqual([]);
    const third = await router.join('s1');
    expect(third.key.generation).toBe(3);
    const retried = post(desk, request);
    await desk.clock.advance(0);
    expect(third.frames).toMatchObject([{ type: 'deliver', generation: 3, session_id: 's1' }]);
    await third.accept(third.frames[0]);
    expect(ok(await retried).native_delivery?.status).toBe('native_accepted');
    expect(desk.rows('SELECT attempt_number FROM attempt')).toHaveLength(2);
  });

  it('[SES-047, MSG-044] is no other session of its principal: that one inherits nothing of it', async () => {
    const first = await router.join('s1');
    await first.leave();
    const request = letter(toSession());
    refused(await post(desk, request));
    const other = await router.join('s2', { bell: 'channel', adapter_kind: 'claude-channel' });
    await desk.clock.advance(1_000);
    expect(other.frames).toEqual([]);
    expect(failure(await post(desk, request))).toEqual(['recipient_unavailable', 'not_live']);
    expect(other.frames).toEqual([]);
    expect(ok(receive(desk, { project: 'shop' }, sessionCaller('s2'))).messages).toEqual([]);
    expect(ok(receive(desk, { project: 'shop' }, sessionCaller('s1'))).messages).toHaveLength(1);
    // Its id before /clear names the same session.
    await desk.store.write((tx) => tx.identity.link('s1b', 's1'));
    const same = await router.join('s1b');
    const retried = post(desk, request);
    await desk.clock.advance(0);
    await same.accept(same.frames[0]);
    expect(ok(await retried).native_delivery?.status).toBe('native_accepted');
    expect(other.frames).toEqual([]);
  });
});

describe('mail whose time has passed', () => {
  it('[MSG-141] fails to an exact session as expired, and is handed to no principal', async () => {
    await attach(desk, 's1');
    const expires_at = new Date(desk.clock.nowMs() + 1_000).toISOString();
    desk.onNotify = () => ({ delivered: false });
    const { details } = refused(await post(desk, toSession({ expires_at })));
    const { delivery_id } = await posted(desk, { expires_at });
    await desk.clock.advance(1_000);
    for (const id of [String(details?.delivery_id), delivery_id])
      expect(await dispatch(desk.board, 'shop', id)).toEqual({ delivered: false, reason: 'expired' });
    expect(desk.counts().attempt).toBe(0);
  });
});

describe('what a host says of its failure', () => {
  const said: [string, string][] = [
    ['whatever_the_host_says', 'adapter_error'],
    ['recipient_unavailable', 'adapter_error'],
    ['adapter_error', 'adapter_error'],
    ['adapter_rejected', 'adapter_rejected'],
    ['adapter_queue_full', 'adapter_queue_full'],
    ['native_message_too_large', 'native_message_too_large'],
    ['message_too_large', 'native_message_too_large'],
    ['e2big', 'native_message_too_large'],
  ];

  it.each(said)('[MSG-193] %s is told as %s', async (failure_code, code) => {
    await attach(desk, 's1');
    desk.host = (): HostOutcome => ({ outcome: 'rejected', failure_code });
    const [told, reason] = failure(await post(desk, toSession()));
    const tooLarge = code === 'native_message_too_large';
    expect([told, reason]).toEqual(tooLarge ? [code, undefined] : ['recipient_unavailable', code]);
    expect(desk.rows('SELECT state, failure_code FROM attempt')).toEqual([
      { state: 'adapter_rejected', failure_code: code },
    ]);
  });
});
