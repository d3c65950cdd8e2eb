// A send to one exact session: it waits for that session's host, and says why it was not reached.

import { beforeEach, describe, expect, it } from 'vitest';
import { fetchMessage } from '../../src/mailbox/fetch.ts';
import { intake } from '../../src/mailbox/intake.ts';
import { poll } from '../../src/mailbox/poll.ts';
import { receive } from '../../src/mailbox/receive.ts';
import { type SendAnswer, send } from '../../src/mailbox/send.ts';
import { describeError, errorCodes, Fault, isRefusal, type Result } from '../../src/protocol/errors.ts';
import { sendFields } from '../../src/protocol/requests.ts';
import { disconnect } from '../../src/sessions/disconnect.ts';
import { discover } from '../../src/sessions/discover.ts';
import { dispatch } from '../../src/sessions/dispatch.ts';
import type { HostOutcome } from '../../src/sessions/switchboard.ts';
import { settle } from './clock.ts';
import {
  accepted,
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

let desk: Scene;
beforeEach(async () => {
  desk = await openScene();
  desk.onNotify = ({ project, delivery_id }) => dispatch(desk.board, project, delivery_id);
});

const toSession = <T extends object>(over: T = {} as T) => ({
  recipient: 's1',
  target_kind: 'session',
  ...over,
});
const go = async (session: string, over = {}) => {
  const { connection_id } = await attach(desk, session, over);
  await disconnect(desk.board, connection_id, 'adapter_disconnect');
};

describe('a send to an exact session', () => {
  it('[MSG-031] returns once the host of that session has accepted, and not before', async () => {
    await attach(desk, 's1');
    await attach(desk, 's2');
    let accept: (outcome: HostOutcome) => void = () => {};
    desk.host = () =>
      new Promise((resolve) => {
        accept = resolve;
      });
    let answer: Result<SendAnswer> | undefined;
    void post(desk, toSession()).then((given) => {
      answer = given;
    });
    desk.clock.after(1_000, () => accept(accepted));
    await desk.clock.advance(999);
    expect(desk.rows('SELECT count(*) AS n FROM message')).toEqual([{ n: 1 }]);
    expect(answer).toBeUndefined();
    await desk.clock.advance(1);
    expect(ok(answer as Result<SendAnswer>).native_delivery?.status).toBe('native_accepted');
    expect(desk.handed.map(({ session_id }) => session_id)).toEqual(['s1']);
  });

  it('[MSG-036] of 30 KiB is stored, and too large for the envelope', async () => {
    await attach(desk, 's1');
    const refusal = refused(await post(desk, toSession({ payload: 'x'.repeat(30 * 1_024) })));
    expect(refusal.code).toBe('native_message_too_large');
    const scope = { project: 'shop', recipient: 's1', message_id: String(refusal.details?.message_id) };
    expect(ok(fetchMessage(desk, { ...scope, target_kind: 'session' })).payload).toHaveLength(30 * 1_024);
  });

  it('[MSG-038] that is not reached says why', async () => {
    const reasonOf = async (over = {}) => {
      const refusal = refused(await post(desk, toSession(over)));
      expect(refusal.code).toBe('recipient_unavailable');
      return refusal.details?.reason;
    };
    expect(await reasonOf({ recipient: 'nobody' })).toBe('never_registered');
    await go('stopped');
    expect(await reasonOf({ recipient: 'stopped' })).toBe('not_live');
    await attach(desk, 'stalled');
    await desk.clock.advance(60_000);
    expect(await reasonOf({ recipient: 'stalled' })).toBe('not_live');
    await attach(desk, 'deaf', { bell: 'none', adapter_kind: 'poll' });
    expect(await reasonOf({ recipient: 'deaf' })).toBe('no_bell');
    await attach(desk, 's1');
    const outcomes: [HostOutcome, string][] = [
      [{ outcome: 'timeout' }, 'host_outcome_timeout'],
      [{ outcome: 'disconnected' }, 'adapter_disconnected'],
      [{ outcome: 'rejected', failure_code: 'adapter_rejected' }, 'adapter_rejected'],
      [{ outcome: 'rejected', failure_code: 'adapter_error' }, 'adapter_error'],
      [{ outcome: 'rejected', failure_code: 'unsupported' }, 'unsupported'],
    ];
    for (const [outcome, reason] of outcomes) {
      desk.host = () => outcome;
      expect(await reasonOf()).toBe(reason);
    }
    desk.host = async (_, connection) => {
      await attach(desk, connection.session_id);
      return accepted;
    };
    expect(await reasonOf()).toBe('replaced');
    desk.host = () => new Promise(() => {});
    for (let nth = 0; nth < 64; nth += 1) void post(desk, toSession());
    await settle();
    expect(await reasonOf()).toBe('busy');
  });

  it('[MSG-041] that fails after the commit keeps the message whole, and names it', async () => {
    await attach(desk, 's1');
    const failures: [string, () => void, object?][] = [
      ['native_message_too_large', () => {}, { payload: 'x'.repeat(20_000) }],
      [
        'generation_changed',
        () => (desk.onNotify = () => ({ delivered: false, reason: 'generation_changed' })),
      ],
      ['recipient_unavailable', () => (desk.onNotify = () => ({ delivered: false, reason: 'not_live' }))],
      ...errorCodes
        .filter((code) => /^(router|store)_/.test(code))
        .map((code): [string, () => void] => [
          code,
          () =>
            (desk.onNotify = () => {
              throw new Fault(code, 'none');
            }),
        ]),
    ];
    for (const [code, arrange, over = {}] of failures) {
      arrange();
      const before = desk.counts();
      const request = toSession({ payload: `kept after ${code}`, ...over });
      const refusal = refused(await post(desk, request));
      expect(refusal.code).toBe(code);
      expect(describeError(refusal).hint).not.toContain('nothing was changed');
      const grown = difference(before, desk.counts());
      expect(grown).toMatchObject({ message: 1, delivery: 1, event: 1, idempotency: 1 });
      const { message_id, delivery_id, event_id } = refusal.details as Record<string, string>;
      const [event] = ok(await poll(desk, { project: 'shop', recipient: 's1', limit: 100 })).events.slice(-1);
      expect(event).toMatchObject({ message_id, delivery_id, event_id });
      const scope = { project: 'shop', recipient: 's1', message_id: String(message_id) };
      expect(ok(fetchMessage(desk, { ...scope, target_kind: 'session' })).payload).toBe(request.payload);
    }
  });

  it('[MSG-044] is never moved: another session of the principal gets nothing, an id from before /clear is the same session', async () => {
    await go('s1');
    await attach(desk, 's2');
    expect(refused(await post(desk, toSession())).code).toBe('recipient_unavailable');
    expect(desk.handed).toEqual([]);
    await desk.store.write((tx) => tx.identity.link('s3', 's1'));
    await attach(desk, 's3');
    ok(await post(desk, toSession()));
    expect(desk.handed.map(({ session_id }) => session_id)).toEqual(['s3']);
  });

  it('[MSG-045, SES-096] that must not wake is not handed over: success where the session is live, else unavailable', async () => {
    const { connection_id } = await attach(desk, 's1');
    const progress = ok(await post(desk, toSession({ status: 'update', task_id: 't' })));
    expect(progress.quieted).toBe('progress');
    const { message_id: reply_to } = ok(await post(desk, toSession()));
    const handed = desk.handed.length;
    const held = ok(await post(desk, toSession({ payload: 'thanks', reply_to })));
    expect(held.quieted).toBe('loop_guard');
    for (const answer of [progress, held]) expect(answer).not.toHaveProperty('native_delivery');
    expect(desk.handed).toHaveLength(handed);
    await disconnect(desk.board, connection_id, 'adapter_disconnect');
    for (const over of [{ status: 'update' }, { payload: 'thanks', reply_to }])
      expect(refused(await post(desk, toSession(over))).code).toBe('recipient_unavailable');
  });

  it('[MSG-047] answers one sender by its live card; where that is gone, it fails and the message stays', async () => {
    const { connection_id } = await attach(desk, 's1');
    const [card] = discover(desk.board, { project: 'shop' });
    const answerTo = () => post(desk, toSession({ recipient: card?.session_id }));
    ok(await answerTo());
    await disconnect(desk.board, connection_id, 'socket_closed');
    const refusal = refused(await answerTo());
    expect(refusal.code).toBe('recipient_unavailable');
    const scope = { project: 'shop', recipient: 's1', message_id: String(refusal.details?.message_id) };
    expect(ok(fetchMessage(desk, { ...scope, target_kind: 'session' })).payload).toBe('hello bob');
  });

  it('[MSG-047] is never found by a label, a host, a principal or a text: each of them names no session', async () => {
    const payload = 'From: s1. Reply to session s1.';
    ok(await post(desk, { payload, sender: 'bob', recipient: 'alice' }, sessionCaller('s1')));
    await attach(desk, 's1');
    for (const recipient of ['bob', 'alice', 'claude', 'claude-code', 'cli', payload]) {
      const { code, details } = refused(await post(desk, toSession({ recipient })));
      expect([code, details?.reason]).toEqual(['recipient_unavailable', 'never_registered']);
    }
    expect(desk.handed).toEqual([]);
  });

  it('checks in a fixed order: the first failure is the answer', async () => {
    const tooLarge = { payload: 'x'.repeat(20_000) };
    desk.onNotify = () => {
      throw new Fault('router_unreachable', 'none');
    };
    const code = async (desk_: Scene, over: object) => {
      const result = await post(desk_, toSession(over));
      return isRefusal(result) ? result.code : 'sent';
    };
    await post(desk, { idempotency_key: 'used' });
    const full = { ...desk, quota: 0 } as Scene;
    expect(await code(full, { idempotency_key: 'used', expected_generation: 0 })).toBe('invalid_request');
    expect(await code(full, { idempotency_key: 'used' })).toBe('idempotency_conflict');
    const before = desk.counts();
    expect(await code(full, tooLarge)).toBe('storage_quota_exceeded');
    expect(difference(before, desk.counts())).toEqual({});
    expect(await code(desk, { ...tooLarge, recipient: 'absent' })).toBe('native_message_too_large');
    expect(await code(desk, { recipient: 'absent' })).toBe('router_unreachable');
  });

  it('may be taken in from the inbox before any hand-off: first send and retry alike succeed', async () => {
    const request = read(sendFields, letter(toSession()));
    refused(await send(desk, request, alice));
    const [mail] = ok(receive(desk, { project: 'shop', recipient: 'bob' }, sessionCaller('s1'))).messages;
    const scope = { project: 'shop', recipient: 's1', message_id: String(mail?.message_id) };
    ok(await intake(desk, { ...scope, idempotency_key: 'k', state: 'ingested' }, sessionCaller('s1')));
    expect(ok(await send(desk, request, alice))).toMatchObject({ quieted: 'taken_in' });
  });
});

describe('a message intended for one session', () => {
  it('[MSG-051] is refused for a host that cannot name itself, and nothing is stored', async () => {
    await attach(desk, 'acp-1', { bell: 'acp', adapter_kind: 'acp', host_kind: 'gemini' });
    await attach(desk, 'app-1', {
      bell: 'codex-queue',
      adapter_kind: 'codex-app-server',
      host_kind: 'codex',
    });
    const before = desk.counts();
    for (const [intended_session, host] of [
      ['acp-1', 'gemini'],
      ['app-1', 'codex'],
    ] as const) {
      const refusal = refused(await post(desk, { intended_session }));
      expect(refusal).toMatchObject({ code: 'session_not_nameable', details: { host_kind: host } });
      expect(refusal.message).toContain(host);
    }
    expect(difference(before, desk.counts())).toEqual({});
    await attach(desk, 'queue-1', { bell: 'codex-queue', adapter_kind: 'codex-queue', host_kind: 'codex' });
    expect(ok(await post(desk, { intended_session: 'queue-1' })).intended_session).toBe('queue-1');
  });

  it('[MSG-052] may name a session that nobody registered', async () => {
    const intended_session = '7f0e6b1c-9d3a-4b53-8a60-2f1f3f3e9a10';
    const sent = ok(await post(desk, { intended_session }));
    expect(sent.intended_session).toBe(intended_session);
    const mail = ok(receive(desk, { project: 'shop' }, sessionCaller(intended_session))).messages;
    expect(mail.map(({ message_id }) => message_id)).toEqual([sent.message_id]);
  });
});
