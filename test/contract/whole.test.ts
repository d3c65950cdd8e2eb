// What is handed over: a whole message to a channel, a notice to every other bell, and nothing where none is needed.

import BetterSqlite3 from 'better-sqlite3';
import { beforeEach, describe, expect, it } from 'vitest';
import { listenerBell } from '../../src/hosts/claude-code/bell.ts';
import { reconcile } from '../../src/mailbox/ring.ts';
import type { StoredMessage } from '../../src/ports/mail.ts';
import { envelopeOf } from '../../src/protocol/delivery.ts';
import { readRequest } from '../../src/protocol/frames.ts';
import { utf8Bytes } from '../../src/protocol/json.ts';
import { dispatch } from '../../src/sessions/dispatch.ts';
import type { HostOutcome } from '../../src/sessions/switchboard.ts';
import { settle } from './clock.ts';
import { attach, letter, ok, openScene, post, posted, refused, type Scene, sessionCaller } from './desk.ts';
import { openExchange } from './exchange.ts';
import { failingStore } from './failing.ts';
import { fault, openRung, ringing } from './rung.ts';

let desk: Scene;
beforeEach(async () => {
  desk = await openScene();
  desk.onNotify = ({ project, delivery_id }) => dispatch(desk.board, project, delivery_id);
});

const channel = { bell: 'channel', adapter_kind: 'claude-channel' } as const;
const toSession = (over: Record<string, unknown> = {}) => ({
  target_kind: 'session',
  recipient: 's1',
  ...over,
});
const whole: HostOutcome = { outcome: 'accepted', content: 'full', receipt: { written: true } };
const last = () => desk.handed.at(-1);

/** A body with which the envelope of the next message has exactly so many bytes: each of its ids is as long as any. */
async function bodyOf(bytes: number, over: Record<string, unknown>): Promise<string> {
  const { onNotify } = desk;
  desk.onNotify = () => ({ delivered: true, quieted: 'progress' });
  const probe = await posted(desk, { ...over, payload: '' });
  desk.onNotify = onNotify;
  const stored = desk.store.read((tx) => tx.messages.byId(probe.message_id)) as StoredMessage;
  return 'x'.repeat(bytes - utf8Bytes(JSON.stringify(envelopeOf(stored.message, ''))));
}

describe('a whole message', () => {
  it('[SES-089] has exactly the fields of its envelope, and its compact JSON is what is counted', async () => {
    await attach(desk, 's1', channel);
    const over = {
      payload: { text: 'a body', list: [1, null] },
      content_type: 'application/json',
      correlation_id: 'c',
      reply_to: 'r',
      task_id: 't',
      status: 'result',
      privacy: 'team',
      expires_at: '2026-03-02T00:00:00Z',
      intended_session: 's1',
    };
    const sent = await posted(desk, over);
    expect(last()).toMatchObject({ content: 'full', session_id: 's1', principal_id: 'bob', project: 'shop' });
    expect(last()?.envelope).toEqual({
      type: 'postbell_message',
      delivery_id: sent.delivery_id,
      message_id: sent.message_id,
      event_id: sent.event_id,
      project: 'shop',
      recipient: 'bob',
      target_kind: 'principal',
      intended_session: 's1',
      sender: 'alice',
      provenance: { transport: 'cli', source_host: 'cli' },
      content_type: 'application/json',
      correlation_id: 'c',
      reply_to: 'r',
      task_id: 't',
      status: 'result',
      created_at: sent.created_at,
      untrusted: true,
      payload: over.payload,
    });
    const fits = await bodyOf(16_384, toSession());
    await posted(desk, toSession({ payload: fits }));
    expect(utf8Bytes(JSON.stringify(last()?.envelope))).toBe(16_384);
    const optional = ['intended_session', 'correlation_id', 'reply_to', 'task_id', 'status'];
    const fields = (nth: number) => Object.keys(desk.handed[nth]?.envelope as object).toSorted();
    expect(fields(1)).toEqual(fields(0).filter((field) => !optional.includes(field)));
    expect(refused(await post(desk, toSession({ payload: `${fits}x` }))).code).toBe(
      'native_message_too_large',
    );
    expect(refused(await post(desk, toSession({ payload: `${fits.slice(1)}\u00e9` }))).code).toBe(
      'native_message_too_large',
    );
    expect(desk.handed).toHaveLength(2);
  });

  it('[MSG-033, SES-097] goes to a channel alone; one too large is a notice to a principal, and fails to a session', async () => {
    const bells = [
      ['channel', 'claude-channel', 'full'],
      ['listener', 'claude-listener', 'notice'],
      ['codex-queue', 'codex-queue', 'notice'],
      ['acp', 'acp', 'notice'],
    ] as const;
    for (const [bell, adapter_kind, content] of bells) {
      await attach(desk, bell, { bell, adapter_kind, principal_id: bell });
      for (const over of [{ recipient: bell }, { recipient: bell, target_kind: 'session' }]) {
        await posted(desk, { ...over, payload: 'the body' });
        expect(last()).toMatchObject({ session_id: bell, content });
        expect(JSON.stringify(last()).includes('the body')).toBe(content === 'full');
        await desk.clock.advance(30_000);
      }
    }
    await attach(desk, 's1', channel);
    const large = 'y'.repeat(30_720);
    await posted(desk, { payload: large });
    expect(last()).toMatchObject({ session_id: 's1', content: 'notice' });
    expect(JSON.stringify(last())).not.toContain('yyy');
    const before = desk.handed.length;
    const request = letter(toSession({ payload: large }));
    for (let n = 0; n < 2; n += 1)
      expect(refused(await post(desk, request)).code).toBe('native_message_too_large');
    const { delivery_id } = refused(await post(desk, request)).details as { delivery_id: string };
    expect(await dispatch(desk.board, 'shop', delivery_id)).toEqual({
      delivered: false,
      reason: 'native_message_too_large',
    });
    expect(desk.handed).toHaveLength(before);
  });

  it.each([
    ['channel', 'claude-channel'],
    ['codex-queue', 'codex-queue'],
  ] as const)(
    '[MSG-035] of 16,384 bytes reaches a session with bell %s; one byte more never does',
    async (bell, adapter_kind) => {
      await attach(desk, 's1', { bell, adapter_kind });
      const fits = await bodyOf(16_384, toSession());
      expect((await posted(desk, toSession({ payload: fits }))).native_delivery).toBeDefined();
      const request = letter(toSession({ payload: `${fits}x` }));
      for (let n = 0; n < 2; n += 1) {
        const { code, details } = refused(await post(desk, request));
        expect(code).toBe('native_message_too_large');
        const kept = desk.store.read((tx) => tx.messages.byId(String(details?.message_id)));
        expect(kept?.waiting).toBe(true);
      }
      expect(desk.handed).toHaveLength(1);
    },
  );

  it('[INB-027] counts as covered by the current reservation: no notice is rung for it within that', async () => {
    await attach(desk, 's1', channel);
    desk.host = () => whole;
    await posted(desk);
    await desk.clock.advance(10_000);
    const second = await posted(desk);
    expect(desk.handed.map(({ content }) => content)).toEqual(['full', 'full']);
    const rings: string[] = [];
    const bell = {
      ...listenerBell(desk),
      ring: async ({ notification_id }: { notification_id: string }) => {
        rings.push(notification_id);
        return { outcome: 'unknown', code: 'stale_generation' } as const;
      },
    };
    const [reservation] = desk.rows('SELECT notification_id, state, expires_at_ms FROM reservation');
    expect(desk.counts().reservation).toBe(1);
    expect(reservation).toMatchObject({
      state: 'notification_sent',
      expires_at_ms: desk.clock.nowMs() + 30_000,
    });
    await desk.clock.advance(29_999);
    await reconcile(desk, ringing, bell, fault);
    expect(rings).toEqual([]);
    await desk.clock.advance(1);
    await reconcile(desk, ringing, bell, fault);
    expect(rings).toHaveLength(1);
    expect(
      desk.rows(
        'SELECT 1 AS rung FROM reservation_cover WHERE delivery_id = ? AND rung = 1',
        second.delivery_id,
      ),
    ).toHaveLength(1);
  });

  it('[INB-030, SES-099] is handed over beside a current reservation, as an exact send is; a notice is not', async () => {
    await attach(desk, 's1');
    for (let n = 0; n < 10; n += 1) {
      await posted(desk);
      await desk.clock.advance(100);
    }
    expect(desk.handed.map(({ content }) => content)).toEqual(['notice']);
    await posted(desk, toSession());
    expect(desk.handed).toHaveLength(2);
    await attach(desk, 's1', channel);
    await posted(desk);
    expect(last()).toMatchObject({ content: 'full' });
    const late = await posted(desk, { payload: 'z'.repeat(20_000) });
    expect(desk.handed).toHaveLength(3);
    expect(await dispatch(desk.board, 'shop', late.delivery_id)).toMatchObject({ reason: 'covered' });
    expect(desk.counts().reservation).toBe(1);
  });
});

describe('[SES-099] the reservation of a session', () => {
  it('takes an exact send right after a notice at once, and no second notice comes before it ends', async () => {
    const { desk: scene, startNotifier, rungAt, reservations } = await openRung();
    await attach(scene, 's1');
    startNotifier();
    await posted(scene);
    await scene.clock.advance(5_000);
    const [before] = reservations();
    const exact = await posted(scene, toSession());
    expect(exact.native_delivery).toMatchObject({ status: 'native_accepted' });
    expect(scene.handed[1]?.envelope).toMatchObject({ notification_id: before?.notification_id });
    expect(reservations()).toEqual([
      { ...before, rung_at_ms: scene.clock.nowMs(), expires_at_ms: scene.clock.nowMs() + 30_000 },
    ]);
    await scene.clock.advance(29_000);
    expect(rungAt()).toEqual([0, 5]);
    await scene.clock.advance(1_000);
    expect(rungAt()).toEqual([0, 5, 35]);
  });

  it('has ten principal sends in one second to a listener as one hand-off', async () => {
    const { desk: scene, startNotifier, rungAt } = await openRung();
    await attach(scene, 's1');
    startNotifier();
    for (let n = 0; n < 10; n += 1) {
      await posted(scene);
      await scene.clock.advance(100);
    }
    expect(scene.handed).toHaveLength(1);
    await scene.clock.advance(28_000);
    expect(rungAt()).toEqual([0]);
    expect(scene.counts()).toMatchObject({ attempt: 1, reservation: 1 });
    await scene.clock.advance(1_000);
    expect(rungAt()).toEqual([0, 30]);
    expect(scene.counts()).toMatchObject({ attempt: 1, reservation: 2 });
  });

  it('is opened with an attempt, which it covers before the host hears of it', async () => {
    const { desk: scene, reservations } = await openRung();
    await attach(scene, 's1');
    const known: unknown[] = [];
    scene.host = ({ delivery_id }) => {
      const covered = scene.rows('SELECT 1 FROM reservation_cover WHERE delivery_id = ?', delivery_id);
      const started = scene.rows('SELECT state FROM attempt WHERE delivery_id = ?', delivery_id);
      known.push([reservations(), covered.length, started]);
      return { outcome: 'timeout' };
    };
    await posted(scene);
    const nowMs = scene.clock.nowMs();
    const opened = {
      notification_id: expect.any(String),
      state: 'preparing',
      step: 0,
      rung_at_ms: nowMs,
      expires_at_ms: nowMs + 30_000,
    };
    expect(known).toEqual([[[opened], 1, [{ state: 'started' }]]]);
  });

  it('that cannot be written leaves no attempt either', async () => {
    await attach(desk, 's1');
    desk.onNotify = () => ({ delivered: false });
    const { delivery_id } = await posted(desk);
    const { database, store } = failingStore(desk);
    for (let writes = 1; writes < 4; writes += 1) {
      database.left = writes;
      await expect(dispatch({ ...desk.board, store }, 'shop', delivery_id)).rejects.toBeDefined();
      expect([desk.handed, desk.counts().attempt, desk.counts().reservation]).toEqual([[], 0, 0]);
    }
  });

  it('has one row and one acceptance where its notifier rang and a notify comes late', async () => {
    const { desk: scene, startNotifier, rungAt } = await openRung();
    await attach(scene, 's1');
    startNotifier();
    scene.onNotify = () => ({ delivered: false });
    const { details } = refused(await post(scene, toSession()));
    await scene.clock.advance(600);
    expect(rungAt()).toEqual([0.5]);
    const late = await dispatch(scene.board, 'shop', String(details?.delivery_id));
    expect(late).toMatchObject({ delivered: true });
    expect(scene.counts()).toMatchObject({ listener_row: 1, host_accept: 1, attempt: 1, reservation: 1 });
  });
});

describe('the router', () => {
  it('[SES-092, SES-112] takes no payload from a caller; and what it did not finish is rung when its reservation ends', async () => {
    const notify = { v: 1, type: 'notify', request_id: 'r1', hops: 0, auth_token: 't', project: 'p' };
    const { frame } = readRequest(JSON.stringify({ ...notify, delivery_id: 'd', payload: 'mine' }));
    expect(refused(frame).code).toBe('unexpected_field');
    const { desk: scene, startNotifier, rungAt } = await openRung();
    await attach(scene, 's1', { lease_ms: 300_000 });
    startNotifier();
    // Killed right after `started`: nobody ever answers.
    scene.host = () => new Promise(() => {});
    scene.onNotify = ({ delivery_id }) => {
      void dispatch(scene.board, 'shop', delivery_id);
      return { delivered: false };
    };
    await posted(scene);
    await settle();
    expect(scene.rows('SELECT state FROM attempt')).toEqual([{ state: 'started' }]);
    await scene.clock.advance(29_900);
    expect(rungAt()).toEqual([]);
    await scene.clock.advance(200);
    expect(rungAt()).toEqual([30]);
    // A hand-off that was refused holds nothing back either.
    const refusing = await openRung();
    await attach(refusing.desk, 's1', { lease_ms: 300_000 });
    refusing.startNotifier();
    refusing.desk.host = () => ({ outcome: 'rejected', failure_code: 'adapter_rejected' });
    await posted(refusing.desk);
    expect(refusing.desk.rows('SELECT state FROM attempt')).toEqual([{ state: 'adapter_rejected' }]);
    await refusing.desk.clock.advance(30_100);
    expect(refusing.rungAt()).toEqual([30]);
    // Left to it for 500 ms, while a connection is live.
    const { desk: other, ...second } = await openRung();
    await attach(other, 's1');
    other.onNotify = () => ({ delivered: false });
    second.startNotifier();
    await posted(other);
    await other.clock.advance(499);
    expect(second.rungAt()).toEqual([]);
    await other.clock.advance(1);
    expect(second.rungAt()).toEqual([0.5]);
  });

  it('[SES-096, MSG-045] hands over only what is worth a wake; an exact send that is not asks whether the session lives', async () => {
    await attach(desk, 's1');
    const held = async (recipient: string, target_kind?: string) => {
      const stored = await heldFor(recipient, target_kind);
      return dispatch(desk.board, 'shop', stored);
    };
    for (const status of ['result', 'failed', 'canceled', 'needs_input', undefined])
      expect(await posted(desk, toSession(status === undefined ? {} : { status }))).toMatchObject({
        native_delivery: { status: 'native_accepted' },
      });
    const before = [desk.handed.length, desk.counts().attempt, desk.counts().reservation];
    const update = await posted(desk, toSession({ status: 'update' }));
    expect(update.quieted).toBe('progress');
    expect(update.native_delivery).toBeUndefined();
    expect(await held('s1')).toEqual({ delivered: true, quieted: 'loop_guard' });
    const dead = refused(await post(desk, toSession({ recipient: 's2', status: 'update' })));
    expect([dead.code, dead.details?.reason]).toEqual(['recipient_unavailable', 'never_registered']);
    expect(await held('s2')).toEqual({ delivered: false, reason: 'never_registered' });
    for (const over of [{ status: 'update' }, { quiet: true }]) await posted(desk, over);
    expect(await held('bob', 'principal')).toEqual({ delivered: false, quieted: 'loop_guard' });
    expect([desk.handed.length, desk.counts().attempt, desk.counts().reservation]).toEqual(before);
    const router = openExchange(desk);
    const live = await router.join('s3');
    await posted(desk, toSession({ recipient: 's3', status: 'update' }));
    expect(live.frames).toEqual([]);
  });

  /** A message that the loop guard held. */
  async function heldFor(recipient: string, target_kind = 'session'): Promise<string> {
    const { onNotify } = desk;
    desk.onNotify = () => ({ delivered: true, quieted: 'progress' });
    const { message_id, delivery_id } = ok(
      await post(desk, { recipient, target_kind }, sessionCaller('s9', 'alice')),
    );
    desk.onNotify = onNotify;
    const writer = new BetterSqlite3(desk.path);
    writer.prepare('UPDATE message SET held = 1 WHERE message_id = ?').run(message_id);
    writer.close();
    return delivery_id;
  }
});
