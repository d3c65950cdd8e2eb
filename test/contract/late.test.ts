// An acceptance that comes after the router has stopped waiting, and what is no such acceptance.

import { beforeEach, describe, expect, it } from 'vitest';
import { Fault, isRefusal } from '../../src/protocol/errors.ts';
import { closeLeftOpen, disconnect } from '../../src/sessions/disconnect.ts';
import { settleLate } from '../../src/sessions/late.ts';
import { settle } from './clock.ts';
import { accepted, letter, ok, openScene, post, posted, refused, type Scene } from './desk.ts';
import { type Client, type Exchange, type Frame, openExchange } from './exchange.ts';

let desk: Scene;
let router: Exchange;
beforeEach(async () => {
  desk = await openScene();
  router = openExchange(desk);
  desk.onNotify = ({ delivery_id }) => router.notify(delivery_id);
});

const toSession = (over: Record<string, unknown> = {}) =>
  letter({ target_kind: 'session', recipient: 's1', ...over });
const attempts = () => desk.rows('SELECT * FROM attempt ORDER BY seq');
const acceptances = () => desk.rows('SELECT attempt_id, delivery_id FROM host_accept');

/** Sends to s1, whose host lets the 10 s pass. */
async function timedOut(host: Client, request = toSession()): Promise<{ frame: Frame; failed: unknown }> {
  const sent = post(desk, request);
  await desk.clock.advance(10_000);
  return { frame: host.frames.at(-1) as Frame, failed: refused(await sent).details?.reason };
}

describe('an acceptance after the time-out', () => {
  it('[SES-104, SES-106] is recorded once, and leaves the attempt and what its sender was told as they were', async () => {
    const host = await router.join('s1');
    const { frame, failed } = await timedOut(host);
    expect(failed).toBe('host_outcome_timeout');
    const before = attempts();
    expect(before).toMatchObject([{ state: 'adapter_failed', failure_code: 'host_outcome_timeout' }]);
    await desk.clock.advance(5_000);
    expect(await host.accept(frame)).toEqual({ correlated: true });
    expect(acceptances()).toEqual([{ attempt_id: frame.attempt_id, delivery_id: frame.delivery_id }]);
    expect(await host.accept(frame)).toEqual({ duplicate: true });
    expect(acceptances()).toHaveLength(1);
    expect(attempts()).toEqual(before);
  });

  it('that comes while the time-out cannot be written yet waits for it, and is recorded', async () => {
    const host = await router.join('s1');
    const sent = post(desk, toSession());
    await settle();
    const { write } = desk.store;
    let full = true;
    desk.store.write = (work) => {
      if (!full) return write(work);
      full = false;
      return Promise.reject(new Fault('store_full', 'no'));
    };
    await desk.clock.advance(10_000);
    expect(full).toBe(false);
    const late = host.accept(host.frames[0]);
    await settle();
    expect(attempts()).toMatchObject([{ state: 'started' }]);
    expect(acceptances()).toEqual([]);
    await desk.clock.advance(1_000);
    expect(await late).toEqual({ correlated: true });
    expect(refused(await sent).details?.reason).toBe('host_outcome_timeout');
    expect(acceptances()).toHaveLength(1);
  });

  const mismatches: [string, Frame, string][] = [
    ['another attempt', { attempt_id: 'att_other' }, 'outcome_scope_mismatch'],
    ['another delivery', { delivery_id: 'dlv_other' }, 'outcome_scope_mismatch'],
    ['another connection', { connection_id: 'con_other' }, 'stale_generation'],
    ['another generation', { generation: 2 }, 'stale_generation'],
  ];

  it.each(mismatches)('[SES-104, SES-105] of %s records nothing', async (_, over, code) => {
    const host = await router.join('s1');
    const { frame } = await timedOut(host);
    const before = desk.counts();
    expect(refused(await host.accept(frame, over)).code).toBe(code);
    expect(desk.counts()).toEqual(before);
    expect(await host.accept(frame)).toEqual({ correlated: true });
  });

  it('[SES-104, SES-105] on a connection that was replaced, or has run out, records nothing', async () => {
    const host = await router.join('s1');
    const { frame } = await timedOut(host);
    const newer = await router.join('s1');
    for (const over of [{}, { connection_id: newer.key.connection_id, generation: 2 }])
      expect(refused(await host.accept(frame, over)).code).toBe('stale_generation');
    expect(refused(await newer.accept(frame)).code).toBe('outcome_scope_mismatch');
    const { frame: second } = await timedOut(newer);
    await desk.clock.advance(60_000);
    expect(refused(await newer.accept(second)).code).toBe('stale_generation');
    expect(acceptances()).toEqual([]);
  });

  it('[SES-104, SES-105] for another run of the router records nothing', async () => {
    const host = await router.join('s1');
    const { frame } = await timedOut(host);
    await desk.store.write((tx) => {
      const [row] = attempts();
      tx.attempts.start({
        attempt_id: 'att_former',
        delivery_id: String(frame.delivery_id),
        connection_id: String(row?.connection_id),
        router_instance: 'run_0',
        at: 'then',
      });
      tx.attempts.finish('att_former', 'adapter_failed', 'host_outcome_timeout', 'then');
    });
    expect(refused(await host.accept({ ...frame, attempt_id: 'att_former' })).code).toBe(
      'outcome_scope_mismatch',
    );
    expect(acceptances()).toEqual([]);
  });

  it('[SES-105] of an attempt that did not time out, and a late rejection, record nothing', async () => {
    const host = await router.join('s1');
    const rejected = post(desk, toSession());
    await settle();
    const first = host.frames[0];
    expect(await host.reject(first)).toEqual({ correlated: true });
    refused(await rejected);
    expect(refused(await host.accept(first)).code).toBe('outcome_scope_mismatch');
    const { frame } = await timedOut(host);
    const before = [attempts(), desk.counts()];
    expect(await host.reject(frame)).toEqual({ duplicate: true });
    expect([attempts(), desk.counts()]).toEqual(before);
    expect(acceptances()).toEqual([]);
  });

  it('[SES-104, SES-105] of an attempt that failed otherwise, or whose connection ended a moment ago, records nothing', async () => {
    const host = await router.join('s1');
    const { frame } = await timedOut(host);
    const { connection_id, generation } = host.key;
    const of = { attempt_id: String(frame.attempt_id), delivery_id: String(frame.delivery_id) };
    const key = { ...of, connection_id, generation };
    await desk.store.write((tx) => {
      const other = { attempt_id: 'att_cut', delivery_id: of.delivery_id, connection_id };
      tx.attempts.start({ ...other, router_instance: 'run_1', at: 'then' });
      tx.attempts.finish('att_cut', 'adapter_failed', 'adapter_disconnected', 'then');
    });
    const cut = await settleLate(desk.board, { ...key, attempt_id: 'att_cut' }, accepted);
    expect(refused(cut).code).toBe('outcome_scope_mismatch');
    await disconnect(desk.board, connection_id, 'socket_closed');
    expect(refused(await settleLate(desk.board, key, accepted)).code).toBe('stale_generation');
    expect(acceptances()).toEqual([]);
  });

  it('[SES-107] ends the handing over: retry, reconnection and drain are answered by it', async () => {
    const host = await router.join('s1');
    const request = toSession();
    const { frame } = await timedOut(host, request);
    const toBob = router.notify((await stored()).delivery_id);
    await desk.clock.advance(10_000);
    expect(await toBob).toMatchObject({ reason: 'host_outcome_timeout' });
    const second = host.frames.at(-1) as Frame;
    expect(second.delivery_id).not.toBe(frame.delivery_id);
    for (const one of [frame, second]) expect(await host.accept(one)).toEqual({ correlated: true });
    await host.leave();
    await desk.clock.advance(60_000);
    const again = await router.join('s1');
    await desk.clock.advance(0);
    expect(again.key.drain_scheduled).toBe(false);
    expect(ok(await post(desk, request)).native_delivery).toMatchObject({
      status: 'native_accepted',
      delivery_id: frame.delivery_id,
    });
    expect(again.frames).toEqual([]);
    expect(host.handed()).toEqual([frame.delivery_id, second.delivery_id]);
  });

  it('that comes while a second attempt is under way is what that one is answered with', async () => {
    const host = await router.join('s1');
    const request = toSession();
    const { frame } = await timedOut(host, request);
    const retried = post(desk, request);
    await settle();
    const second = host.frames.at(-1);
    expect(await host.accept(frame)).toEqual({ correlated: true });
    expect(await host.accept(second)).toEqual({ correlated: true });
    const answer = ok(await retried);
    expect(answer.native_delivery?.delivery_id).toBe(frame.delivery_id);
    expect(refused(await host.accept(second)).code).toBe('already_accepted');
    expect(acceptances()).toEqual([{ attempt_id: frame.attempt_id, delivery_id: frame.delivery_id }]);
    expect(attempts().map(({ state }) => state)).toEqual(['adapter_failed', 'adapter_returned']);
  });

  it('is no acceptance where the next router has ended its connection', async () => {
    const host = await router.join('s1');
    const { frame } = await timedOut(host);
    await closeLeftOpen({ ...desk.board, instance: 'run_2' });
    expect(isRefusal(await host.accept(frame))).toBe(true);
    expect(acceptances()).toEqual([]);
  });

  async function stored() {
    const { onNotify } = desk;
    desk.onNotify = () => ({ delivered: false });
    await desk.clock.advance(30_000);
    const sent = await posted(desk);
    desk.onNotify = onNotify;
    return sent;
  }
});
