// Sending: what is promised, and what is kept when the recipient cannot be reached.

import { beforeEach, describe, expect, it } from 'vitest';
import { fetchMessage } from '../../src/mailbox/fetch.ts';
import { poll } from '../../src/mailbox/poll.ts';
import { receive } from '../../src/mailbox/receive.ts';
import { describeError, Fault } from '../../src/protocol/errors.ts';
import { dispatch } from '../../src/sessions/dispatch.ts';
import { settle } from './clock.ts';
import {
  alice,
  attach,
  difference,
  letter,
  ok,
  openScene,
  post,
  posted,
  refused,
  type Scene,
  sessionCaller,
} from './desk.ts';
import { openExchange } from './exchange.ts';

let desk: Scene;
beforeEach(async () => {
  desk = await openScene();
});

const viaRouter = (): void => {
  desk.onNotify = ({ project, delivery_id }) => dispatch(desk.board, project, delivery_id);
};

describe('a send', () => {
  it('[MSG-017] reaches the one inbox that it names, whatever characters that has', async () => {
    expect(refused(await post(desk, { recipient: ['a', 'b'] })).code).toBe('invalid_request');
    for (const field of ['recipients', 'topic', 'to'])
      expect(refused(await post(desk, { [field]: 'x' })).code).toBe('invalid_request');
    await posted(desk, { recipient: 'a,b' });
    await posted(desk, { recipient: '*' });
    const counts: number[] = [];
    for (const recipient of ['a', 'b', 'bob', 'a,b', '*'])
      counts.push(ok(await poll(desk, { project: 'shop', recipient })).events.length);
    expect(counts).toEqual([0, 0, 0, 1, 1]);
  });

  it('answers with the message as it is stored, and what is known of its recipient', async () => {
    viaRouter();
    const request = { payload: 'x', correlation_id: 'c', reply_to: 'm', task_id: 't', status: 'needs_input' };
    const sent = ok(await post(desk, { ...request, privacy: 'team' }, sessionCaller('a1')));
    const { payload: _, ...links } = request;
    expect(sent).toEqual({
      message_id: expect.stringMatching(/^msg_/),
      delivery_id: expect.stringMatching(/^dlv_/),
      event_id: expect.stringMatching(/^evt_/),
      project: 'shop',
      sender: 'alice',
      recipient: 'bob',
      target_kind: 'principal',
      content_type: 'text/plain',
      privacy: 'team',
      ...links,
      created_at: '2026-03-01T12:00:00.000Z',
      provenance: { transport: 'mcp', source_host: 'claude-code', session: 'a1' },
      delivery_state: 'receiver_stored',
      recipient_presence: 'unknown',
    });
    expect(desk.wake.touches).toBe(1);
  });

  it.each([
    ['the router is away', () => new Fault('router_unreachable', 'no socket')],
    ['the router does not answer', () => new Fault('router_timeout', 'silence')],
    ['the router answers nonsense', () => new Fault('invalid_response', 'nonsense')],
    ['the router refuses', () => new Fault('authentication_failed', 'no token')],
    ['the router fails', () => new Fault('internal_error', 'a bug')],
  ])('[MSG-029] to a principal succeeds where %s', async (_, fault) => {
    desk.onNotify = () => {
      throw fault();
    };
    expect(await posted(desk)).toMatchObject({
      recipient_presence: 'not_checked',
      delivery_state: 'receiver_stored',
    });
  });

  it('[MSG-029] to a principal is handed over by the router, and waits for no host', async () => {
    const router = openExchange(desk);
    const silent = await router.join('s1');
    const asked: boolean[] = [];
    desk.onNotify = ({ delivery_id, wait }) => {
      asked.push(wait);
      return router.notify(delivery_id, { wait });
    };
    const { delivery_id } = await posted(desk);
    await settle();
    expect([asked, silent.handed()]).toEqual([[false], [delivery_id]]);
    expect(desk.rows('SELECT state FROM attempt')).toEqual([{ state: 'started' }]);
    await desk.clock.advance(10_000);
  });

  it('does not hide a defect behind a kept message', async () => {
    desk.onNotify = () => {
      throw new TypeError('a bug');
    };
    await expect(post(desk)).rejects.toThrow(TypeError);
  });

  it('[MSG-025] is linked to others by correlation and reply, and is delivered all the same', async () => {
    viaRouter();
    await attach(desk, 's1');
    const plain = await posted(desk);
    const links = { correlation_id: 'c'.repeat(255), reply_to: 'no such message' };
    const linked = await posted(desk, links);
    const asked = ok(await post(desk, { sender: 'bob', recipient: 'alice' }, sessionCaller('s2')));
    const answering = await posted(desk, { reply_to: asked.message_id });
    for (const session of ['s1', 's2']) {
      const seen = ok(receive(desk, { project: 'shop' }, sessionCaller(session))).messages;
      const ids = [plain, linked, answering].map(({ message_id }) => message_id);
      expect(seen.map(({ message_id }) => message_id)).toEqual(ids);
    }
    const mail = ok(receive(desk, { project: 'shop' }, sessionCaller('s1'))).messages;
    expect(mail[1]).toMatchObject(links);
    const routing =
      "SELECT recipient, target_kind, intended_session, open FROM delivery WHERE recipient = 'bob'";
    expect(new Set(desk.rows(routing).map((row) => JSON.stringify(row))).size).toBe(1);
  });

  it('[MSG-020] tells content from the way a call is made: a default that is spelled out is the same content', async () => {
    const first = await posted(desk, { idempotency_key: 'k' });
    const spelled = {
      target_kind: 'principal',
      content_type: 'text/plain',
      privacy: 'private',
      quiet: false,
    };
    const second = await posted(desk, { idempotency_key: 'k', ...spelled });
    expect(second).toEqual(first);
    expect(await posted(desk, { idempotency_key: 'k', project: ' shop ', recipient: 'bob ' })).toEqual(first);
    const variants = [
      { recipient: 'carol' },
      { target_kind: 'session' },
      { payload: 'hello bob ' },
      { content_type: 'application/json' },
      { privacy: 'team' },
      { correlation_id: 'c' },
      { reply_to: 'r' },
      { task_id: 't' },
      { status: 'result' },
      { quiet: true },
      { intended_session: 's1' },
    ];
    const before = desk.counts();
    for (const over of variants)
      expect(refused(await post(desk, { idempotency_key: 'k', ...over }))).toMatchObject({
        code: 'idempotency_conflict',
        details: { message_id: first.message_id },
      });
    expect(difference(before, desk.counts())).toEqual({});
  });

  it('answers alike when it is first made and when it is repeated', async () => {
    for (const quiet of [true, false, undefined]) {
      const request = letter({ ...(quiet !== undefined && { quiet }), intended_session: 's1' });
      expect(await posted(desk, request)).toEqual(await posted(desk, request));
    }
  });
});

describe('a send to an exact session', () => {
  const toSession = (over: Record<string, unknown> = {}) => ({
    target_kind: 'session',
    recipient: 's1',
    ...over,
  });

  it('[MSG-049] takes no intended session, which is for principals', async () => {
    const refusal = refused(await post(desk, toSession({ intended_session: 's1' })));
    expect(refusal).toMatchObject({ code: 'invalid_request', details: { field: 'intended_session' } });
    expect(desk.counts().message).toBe(0);
    const sent = await posted(desk, { intended_session: 's1' });
    expect(sent.intended_session).toBe('s1');
    expect(desk.rows('SELECT intended_session FROM delivery')).toEqual([{ intended_session: 's1' }]);
  });

  it('is never quiet', async () => {
    expect(refused(await post(desk, toSession({ quiet: true }))).details).toEqual({ field: 'quiet' });
    expect(desk.counts().message).toBe(0);
  });

  it('[MSG-032] succeeds on native acceptance, and says by what', async () => {
    viaRouter();
    await attach(desk, 's1');
    const sent = await posted(desk, toSession());
    expect(sent.native_delivery).toEqual({
      status: 'native_accepted',
      delivery_id: sent.delivery_id,
      adapter_kind: 'claude-listener',
      receipt: { taken: true },
      accepted_at: '2026-03-01T12:00:00.000Z',
    });
    expect((await posted(desk)).native_delivery).toBeUndefined();
  });

  it.each(['listener', 'codex-queue', 'channel'] as const)(
    'may have an envelope of 16,384 bytes, measured for every bell: %s',
    async (bell) => {
      viaRouter();
      await attach(desk, 's1', { bell });
      const room = 16_384 - envelopeBytes(await posted(desk, toSession({ payload: 'x' })));
      const handed = desk.handed.length;
      expect(
        (await posted(desk, toSession({ payload: '\u20ac'.repeat(room / 3) + 'x'.repeat(room % 3) })))
          .native_delivery,
      ).toBeDefined();
      expect(desk.handed).toHaveLength(handed + 1);
      const request = letter(toSession({ payload: 'x'.repeat(room + 1) }));
      for (const attempt of ['first', 'retry']) {
        const refusal = refused(await post(desk, request));
        expect(`${attempt} ${refusal.code}`).toBe(`${attempt} native_message_too_large`);
        expect(describeError(refusal).retryable).toBe(false);
        const { message_id } = refusal.details as { message_id: string };
        const scope = { project: 'shop', recipient: 's1', message_id, target_kind: 'session' } as const;
        expect(ok(fetchMessage(desk, scope)).payload).toBe('x'.repeat(room + 1));
      }
      expect(desk.handed).toHaveLength(handed + 1);
    },
  );

  it.each([
    ['router_unreachable', () => new Fault('router_unreachable', 'no socket')],
    ['router_timeout', () => new Fault('router_timeout', 'silence')],
    ['store_busy', () => new Fault('store_busy', 'locked')],
    ['recipient_unavailable', () => undefined],
  ])('that fails with %s keeps the message, and names it', async (code, fault) => {
    desk.onNotify = () => {
      const error = fault();
      if (error !== undefined) throw error;
      return { delivered: false, reason: 'not_live' };
    };
    const request = letter(toSession());
    const refusal = refused(await post(desk, request));
    expect(refusal.code).toBe(code);
    const [row] = desk.rows('SELECT message_id, delivery_id, event_id FROM event');
    expect(refusal.details).toMatchObject(row as object);
    const before = desk.counts();
    expect(refused(await post(desk, request)).details).toEqual(refusal.details);
    expect(difference(before, desk.counts())).toEqual({});
    expect(ok(receive(desk, { project: 'shop' }, sessionCaller('s1'))).messages).toHaveLength(1);
  });

  /** Of the complete envelope with this message's routing. */
  function envelopeBytes(sent: Awaited<ReturnType<typeof posted>>): number {
    const {
      privacy: _,
      delivery_state: __,
      recipient_presence: ___,
      native_delivery: ____,
      ...routing
    } = sent;
    return Buffer.byteLength(
      JSON.stringify({ type: 'postbell_message', ...routing, untrusted: true, payload: '' }),
    );
  }

  it('has a caller that is known by its transport', async () => {
    await post(desk, {}, { ...alice, session: 'a1' });
    expect(desk.rows('SELECT transport, source_host, caller_session FROM message')).toEqual([
      { transport: 'cli', source_host: 'cli', caller_session: 'a1' },
    ]);
  });
});
