// A session's process at the router's socket: it registers, stays registered, answers, and begins again.

import { beforeEach, describe, expect, it } from 'vitest';
import type { Fault } from '../../src/protocol/errors.ts';
import { routerCalls } from '../../src/router/calls.ts';
import { connectRouter } from '../../src/router/client.ts';
import { expireLeases } from '../../src/sessions/disconnect.ts';
import { discover } from '../../src/sessions/discover.ts';
import { noonMs } from './clock.ts';
import { letter, openScene, post, registration, type Scene } from './desk.ts';
import {
  arrived,
  attached,
  type FakeRouter,
  openFakeRouter,
  openRouter,
  pass,
  registered,
} from './sockets.ts';

let desk: Scene;
beforeEach(async () => {
  desk = await openScene();
});

const cards = () => discover(desk.board, { project: 'shop' });
const bells = () =>
  desk
    .rows("SELECT bell FROM connection WHERE disconnected_at IS NULL AND session_id = 's1'")
    .map(({ bell }) => bell);
const channel = { bell: 'channel', adapter_kind: 'claude-channel' } as const;
const codes = (faults: unknown[]) => faults.map((fault) => (fault as Fault).code);
const times = (fake: FakeRouter, type: string) =>
  fake.asked.filter((frame) => frame.type === type).map(({ atMs }) => (atMs - noonMs) / 1_000);

describe('two processes of one session', () => {
  it.each([
    ['listener', 'channel'],
    ['channel', 'listener'],
  ])(
    '[SES-027] %s, then %s: the channel holds it; when it ends, the listener is back within 31 s',
    async (...order) => {
      const socket = await openRouter(desk);
      const made = [];
      for (const bell of order) {
        made.push(attached(desk, socket, bell === 'channel' ? channel : {}));
        await pass(desk.clock, 1_000);
      }
      expect(bells()).toEqual(['channel']);
      await pass(desk.clock, 100_000, 1_000);
      expect(bells()).toEqual(['channel']);
      await made[order.indexOf('channel')]?.attachment.close();
      await arrived();
      expect(bells()).toEqual([]);
      await pass(desk.clock, 31_000, 1_000);
      expect(bells()).toEqual(['listener']);
    },
  );

  it('[SES-027] with equal bells replace each other once in 5 minutes', async () => {
    const socket = await openRouter(desk);
    attached(desk, socket);
    await pass(desk.clock, 1_000);
    attached(desk, socket);
    await pass(desk.clock, 300_000, 1_000);
    expect(desk.rows("SELECT transition FROM presence WHERE transition = 'superseded'")).toHaveLength(1);
    expect(cards()).toMatchObject([{ session_id: 's1', generation: 2 }]);
  });

  it('[SES-045] leave the newer registration in place when the replaced one ends', async () => {
    const socket = await openRouter(desk);
    const first = attached(desk, socket);
    await pass(desk.clock, 500);
    attached(desk, socket);
    await pass(desk.clock, 500);
    expect(cards()).toMatchObject([{ generation: 2 }]);
    await first.attachment.close();
    await pass(desk.clock, 5_000);
    expect(cards()).toMatchObject([{ session_id: 's1', generation: 2 }]);
  });
});

describe('a lease', () => {
  it.each([
    [undefined, 60_000],
    [300_000, 300_000],
  ])('[SES-034] asked for as %s lasts %d ms, and is renewed at its half', async (lease_ms, granted) => {
    const over = lease_ms === undefined ? {} : { lease_ms };
    const socket = await openRouter(desk);
    attached(desk, socket, over);
    await arrived();
    expect(cards()[0]?.lease_expires_at_ms).toBe(noonMs + granted);
    const fake = await openFakeRouter(desk, ({ type, lease_ms: asked }) =>
      registered({ lease_ms: type === 'register' ? (asked ?? 60_000) : granted }),
    );
    attached(desk, fake.socketPath, over);
    await pass(desk.clock, 2 * granted, granted / 4);
    expect(fake.asked[0]?.lease_ms).toBe(lease_ms);
    const half = granted / 2_000;
    expect(times(fake, 'heartbeat')).toEqual([half, 2 * half, 3 * half, 4 * half]);
  });
});

describe('a hand-off', () => {
  const toSession = () => letter({ target_kind: 'session', recipient: 's1' });

  it('[SES-029] is answered in the name of the connection that it names, the new one after a reconnection', async () => {
    const sent: Record<string, unknown>[] = [];
    const fake = await openFakeRouter(desk, (frame, socket) => {
      if (frame.type !== 'register') {
        sent.push(frame);
        return { ok: true, correlated: true };
      }
      const key = { connection_id: `con_${fake.came}`, generation: fake.came };
      const envelope = { type: 'postbell_message_notice', notification_id: 'n' };
      const deliver = (id: string, named = key): string => {
        const of = { ...named, attempt_id: `att_${id}`, delivery_id: id };
        return `${JSON.stringify({ type: 'deliver', content: 'notice', envelope, ...of })}\n`;
      };
      const former = { connection_id: 'con_0', generation: 7 };
      const frames = [deliver(`good_${fake.came}`), deliver(`bad_${fake.came}`), deliver('good_0', former)];
      desk.clock.after(10, () => socket.write(frames.slice(0, fake.came + 1).join('')));
      return registered(key);
    });
    attached(desk, fake.socketPath, {
      take: async ({ delivery_id }) =>
        delivery_id.startsWith('good')
          ? { content: 'notice', receipt: {} }
          : { failure_code: 'adapter_rejected' },
    });
    await pass(desk.clock, 100);
    fake.sockets[0]?.destroy();
    await pass(desk.clock, 1_000);
    expect(sent).toMatchObject([
      { type: 'host_accept', attempt_id: 'att_good_1', connection_id: 'con_1', generation: 1 },
      { type: 'host_reject', attempt_id: 'att_bad_1', connection_id: 'con_1', generation: 1 },
      { type: 'host_accept', attempt_id: 'att_good_2', connection_id: 'con_2', generation: 2 },
      { type: 'host_reject', attempt_id: 'att_bad_2', connection_id: 'con_2', generation: 2 },
      { type: 'host_accept', attempt_id: 'att_good_0', connection_id: 'con_0', generation: 7 },
    ]);
  });

  it('[SES-029] after a reconnection to the real router is correlated', async () => {
    const socket = await openRouter(desk);
    const { attachment } = attached(desk, socket);
    await arrived();
    await attachment.close();
    await arrived();
    const again = attached(desk, socket);
    await arrived();
    const told = notify(socket, toSession());
    await pass(desk.clock, 500);
    expect(await told).toMatchObject({ delivered: true });
    expect(again.taken).toMatchObject([{ generation: 2 }]);
    expect(desk.rows('SELECT state FROM attempt')).toEqual([{ state: 'adapter_returned' }]);
  });

  it('[SES-108] that was never accepted comes again; one that was is answered as before, and taken once', async () => {
    const answers: Record<string, unknown>[] = [];
    const deliver = (n: number, delivery_id: string) => ({
      type: 'deliver',
      attempt_id: `att_${n}`,
      delivery_id,
      connection_id: 'con_1',
      generation: 1,
      content: 'notice',
      envelope: { type: 'postbell_message_notice', notification_id: 'n' },
    });
    const fake = await openFakeRouter(desk, (frame) => {
      if (frame.type === 'register') return registered();
      if (frame.type === 'host_accept') answers.push(frame);
      return { ok: true, correlated: true };
    });
    let receipt = 0;
    const host = attached(desk, fake.socketPath, {
      take: async () => {
        receipt += 1;
        return { content: 'notice', receipt };
      },
    });
    await arrived();
    const send = async (n: number, id: string) => {
      fake.sockets[0]?.write(`${JSON.stringify(deliver(n, id))}\n`);
      await arrived();
    };
    await send(1, 'dlv_0');
    await send(2, 'dlv_0');
    expect(host.taken).toHaveLength(1);
    expect(answers).toMatchObject([
      { attempt_id: 'att_1', delivery_id: 'dlv_0', receipt: 1 },
      { attempt_id: 'att_2', delivery_id: 'dlv_0', receipt: 1 },
    ]);
    for (let n = 1; n < 1_024; n += 1) fake.sockets[0]?.write(`${JSON.stringify(deliver(n, `dlv_${n}`))}\n`);
    for (let n = 0; n < 20; n += 1) await arrived();
    expect(host.taken).toHaveLength(1_024);
    await send(3, 'dlv_0');
    expect(host.taken).toHaveLength(1_024);
    // The 1,025th makes room: what was accepted longest ago, since nobody asked for it again, is forgotten.
    await send(4, 'dlv_1024');
    await send(5, 'dlv_1');
    expect(host.taken).toHaveLength(1_026);
    await send(6, 'dlv_0');
    expect(host.taken).toHaveLength(1_026);
  });

  it('[SES-108] whose host ends before it accepts is handed to the next one: at least once', async () => {
    const socket = await openRouter(desk);
    const first = attached(desk, socket, { take: () => new Promise(() => {}) });
    await arrived();
    const request = toSession();
    const cut = notify(socket, request);
    await arrived();
    expect(first.taken).toHaveLength(1);
    await first.attachment.close();
    expect(await cut).toMatchObject({ delivered: false, reason: 'adapter_disconnected' });
    const second = attached(desk, socket);
    await arrived();
    const again = notify(socket, request);
    await arrived();
    expect(await again).toMatchObject({ delivered: true });
    expect(second.taken.map(({ delivery_id }) => delivery_id)).toEqual(
      first.taken.map(({ delivery_id }) => delivery_id),
    );
  });

  it('that its host accepts after the time-out is answered all the same, on the connection it came on', async () => {
    const socket = await openRouter(desk);
    let accept = (): void => {};
    const host = attached(desk, socket, {
      take: () =>
        new Promise((resolve) => {
          accept = () => resolve({ content: 'notice', receipt: { late: true } });
        }),
    });
    await arrived();
    const request = toSession();
    const told = notify(socket, request);
    await pass(desk.clock, 10_500);
    expect(await told).toMatchObject({ reason: 'host_outcome_timeout' });
    const retried = notify(socket, request);
    await pass(desk.clock, 2_000);
    expect(host.taken).toHaveLength(1);
    accept();
    await arrived();
    expect(desk.rows('SELECT receipt FROM host_accept')).toEqual([{ receipt: '{"late":true}' }]);
    expect(await retried).toMatchObject({ delivered: true, native_delivery: { receipt: { late: true } } });
    expect(host.taken).toHaveLength(1);
  });

  /** Stores the message, and has the router at the socket hand it over. */
  async function notify(socketPath: string, request: Record<string, unknown>): Promise<unknown> {
    const calls = routerCalls({ socketPath, token: () => 'token' }, desk);
    let id = '';
    desk.onNotify = ({ delivery_id }) => {
      id = delivery_id;
      return { delivered: false };
    };
    await post(desk, request);
    return calls.notify({ project: 'shop', delivery_id: id, wait: true }).finally(() => calls.close());
  }
});

/** Between one moment and the next, in milliseconds. */
const gapsOf = (at: number[]) => at.slice(1).map((ms, index) => (ms - (at[index] as number)) * 1_000);

describe('a host that cannot register', () => {
  it('[SES-113] tries at once, then after 100 ms doubling to 5 s, each give or take a fifth', async () => {
    const fake = await openFakeRouter(desk, () => ({
      ok: false,
      error: { code: 'store_busy', message: 'locked' },
    }));
    attached(desk, fake.socketPath);
    await pass(desk.clock, 30_000, 5);
    const gaps = gapsOf(times(fake, 'register'));
    expect(gaps.length).toBeGreaterThan(8);
    const wanted = [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000];
    for (const [index, ms] of wanted.entries()) {
      expect(gaps[index]).toBeGreaterThanOrEqual(ms * 0.8 - 10);
      expect(gaps[index]).toBeLessThanOrEqual(ms * 1.2 + 10);
    }
    expect(gaps.slice(0, 8)).not.toEqual(wanted);
  });

  it('[SES-113] that may end makes 6 tries at its start, and without end after a first success', async () => {
    let refuses = true;
    const fake = await openFakeRouter(desk, ({ type }) =>
      refuses
        ? { ok: false, error: { code: 'store_busy', message: 'locked' } }
        : type === 'register'
          ? registered()
          : { ok: true, lease_ms: 60_000 },
    );
    let gaveUp = 0;
    const options = {
      startAttemptsMax: 6,
      onGaveUp: () => {
        gaveUp += 1;
      },
    };
    attached(desk, fake.socketPath, options);
    await pass(desk.clock, 60_000, 20);
    expect([times(fake, 'register').length, gaveUp]).toEqual([6, 1]);
    refuses = false;
    attached(desk, fake.socketPath, options);
    await pass(desk.clock, 100, 20);
    refuses = true;
    for (const socket of fake.sockets) socket.destroy();
    await pass(desk.clock, 120_000, 100);
    expect(times(fake, 'register').length).toBeGreaterThan(20);
    expect(gaveUp).toBe(1);
  });

  it('[SES-113] gives each registration 5 s, and after a first success goes on without end', async () => {
    let silent = true;
    const fake = await openFakeRouter(desk, ({ type }) =>
      silent ? undefined : type === 'register' ? registered() : { ok: true, lease_ms: 60_000 },
    );
    const host = attached(desk, fake.socketPath);
    await pass(desk.clock, 4_900, 100);
    expect(host.faults).toEqual([]);
    await pass(desk.clock, 200, 100);
    expect(codes(host.faults)).toEqual(['router_timeout']);
    silent = false;
    await pass(desk.clock, 1_000, 20);
    expect(times(fake, 'register')).toHaveLength(2);
    for (const socket of fake.sockets) socket.destroy();
    fake.answer = () => ({ ok: false, error: { code: 'store_busy', message: 'locked' } });
    await pass(desk.clock, 300_000, 500);
    const at = times(fake, 'register').slice(2);
    expect(at.length).toBeGreaterThan(45);
    expect(Math.max(...gapsOf(at))).toBeLessThanOrEqual(6_500);
  });
});

describe('a host that stalled past its lease', () => {
  it('[SES-038] is expired, not replaced: whatever it asks next is stale, and it registers again as a new generation', async () => {
    const socket = await openRouter(desk);
    const key = { connection_id: 'con_1', generation: 1 };
    const outcome = { ...key, attempt_id: 'a', delivery_id: 'd' };
    const verbs = [
      { type: 'heartbeat', project: 'shop', session_id: 's1' },
      { type: 'disconnect', project: 'shop', session_id: 's1' },
      { type: 'host_accept', ...outcome, content: 'notice', receipt: {} },
      { type: 'host_reject', ...outcome, failure_code: 'adapter_error' },
    ];
    for (const [index, verb] of verbs.entries()) {
      const client = await connectRouter(socket, desk);
      const introduction = { ...registration('s1'), auth_token: 'token', postbell_version: '0.1.0' };
      const { connection_id, generation } = await client.request(
        { type: 'register', ...introduction },
        1_000,
      );
      expect(generation).toBe(index + 1);
      await desk.clock.advance(60_000);
      const asked = client.request({ ...verb, connection_id, generation }, 1_000);
      await expect(asked).rejects.toMatchObject({ code: 'stale_generation' });
      await expireLeases(desk.board);
      expect(desk.rows('SELECT transition, reason FROM presence ORDER BY seq').at(-1)).toEqual({
        transition: 'disconnected',
        reason: 'lease_expired',
      });
      client.close();
      await arrived();
    }
    const host = attached(desk, socket);
    await arrived();
    // The whole process stands still, and wakes at its overdue heartbeat.
    desk.clock.jump(61_000);
    await pass(desk.clock, 30_200, 100);
    expect(codes(host.faults)).toEqual(['stale_generation']);
    expect(cards()).toMatchObject([{ session_id: 's1', generation: 6 }]);
  });

  it.each(['heartbeat', 'host_accept'])(
    '[SES-038] and is told so again and again, by its %s, waits 100 ms doubling to 5 s, give or take a fifth',
    async (asks) => {
      const lease_ms = asks === 'heartbeat' ? 400 : 60_000;
      const deliver = {
        content: 'notice',
        envelope: { type: 'postbell_message_notice', notification_id: 'n' },
      };
      const fake = await openFakeRouter(desk, ({ type }, socket) => {
        if (type !== 'register') return { ok: false, error: { code: 'stale_generation', message: '' } };
        const of = { attempt_id: 'a', delivery_id: `d${fake.came}`, connection_id: 'con_1', generation: 1 };
        if (asks === 'host_accept')
          desk.clock.after(200, () =>
            socket.write(`${JSON.stringify({ type: 'deliver', ...of, ...deliver })}\n`),
          );
        return registered({ lease_ms });
      });
      attached(desk, fake.socketPath);
      await pass(desk.clock, 26_000, 5);
      const gaps = gapsOf(times(fake, 'register')).map((ms) => ms - 200);
      for (const [index, ms] of [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000].entries()) {
        expect(gaps[index]).toBeGreaterThanOrEqual(ms * 0.8 - 15);
        expect(gaps[index]).toBeLessThanOrEqual(ms * 1.2 + 15);
      }
      expect(fake.asked[1]?.type).toBe(asks);
    },
  );
});

describe('a lease that was renewed', () => {
  it('ends the growing of delays', async () => {
    let refusing = true;
    const fake = await openFakeRouter(desk, ({ type }) => {
      if (refusing) return { ok: false, error: { code: 'store_busy', message: 'locked' } };
      return type === 'register' ? registered() : { ok: true, generation: 1, lease_ms: 60_000 };
    });
    attached(desk, fake.socketPath);
    await pass(desk.clock, 5_000, 50);
    refusing = false;
    await pass(desk.clock, 40_000, 500);
    expect(times(fake, 'heartbeat')).toHaveLength(1);
    const before = times(fake, 'register').length;
    fake.sockets.at(-1)?.destroy();
    await pass(desk.clock, 130, 10);
    expect(times(fake, 'register')).toHaveLength(before + 1);
  });
});

describe('a summary', () => {
  it('[SES-159] is shown at once, kept by heartbeats without it and over a reconnection, and cleared by an empty one', async () => {
    const socket = await openRouter(desk);
    const { attachment } = attached(desk, socket);
    const shown = async () => {
      await arrived();
      return cards()[0]?.work_summary;
    };
    expect(await shown()).toBeNull();
    void attachment.summarize('painting');
    expect(await shown()).toBe('painting');
    await pass(desk.clock, 90_000, 5_000);
    expect(await shown()).toBe('painting');
    void attachment.summarize('');
    expect(await shown()).toBeNull();
    void attachment.summarize('drying');
    await arrived();
    attached(desk, socket, channel);
    await arrived();
    expect(await shown()).toBeNull();
    const fake = await openFakeRouter(desk, ({ type }) =>
      type === 'register' ? registered() : { ok: true, generation: 1, lease_ms: 60_000 },
    );
    const host = attached(desk, fake.socketPath);
    await arrived();
    await host.attachment.summarize('sanding');
    await pass(desk.clock, 31_000, 1_000);
    fake.sockets[0]?.destroy();
    await pass(desk.clock, 1_000);
    const fields = fake.asked.map(({ type, work_summary }) => [type, work_summary]);
    expect(fields).toEqual([
      ['register', undefined],
      ['heartbeat', 'sanding'],
      ['heartbeat', undefined],
      ['register', 'sanding'],
    ]);
  });

  it('of a session that is not registered yet is told with or right after its registration', async () => {
    let registering = false;
    const fake = await openFakeRouter(desk, ({ type, request_id }, out) => {
      if (type !== 'register') return { ok: true, generation: 1, lease_ms: 60_000 };
      registering = true;
      desk.clock.after(100, () => out.write(`${JSON.stringify({ v: 1, request_id, ...registered() })}\n`));
      return undefined;
    });
    const host = attached(desk, fake.socketPath);
    await arrived();
    expect(registering).toBe(true);
    await host.attachment.summarize('sanding');
    await pass(desk.clock, 200);
    expect(fake.asked.map(({ type, work_summary }) => [type, work_summary])).toEqual([
      ['register', undefined],
      ['heartbeat', 'sanding'],
    ]);
  });

  it('that finds its lease expired is told with the registration that follows', async () => {
    let stale = false;
    const fake = await openFakeRouter(desk, ({ type }) => {
      if (type === 'register') return registered();
      return stale
        ? { ok: false, error: { code: 'stale_generation', message: '' } }
        : { ok: true, generation: 1, lease_ms: 60_000 };
    });
    const host = attached(desk, fake.socketPath);
    await arrived();
    stale = true;
    await host.attachment.summarize('sanding');
    stale = false;
    await pass(desk.clock, 1_000);
    expect(fake.asked.at(-1)).toMatchObject({ type: 'register', work_summary: 'sanding' });
  });

  it('that could not be told is told with the next heartbeat', async () => {
    let busy = false;
    const fake = await openFakeRouter(desk, ({ type }) => {
      if (type === 'register') return registered();
      return busy
        ? { ok: false, error: { code: 'store_busy', message: 'locked' } }
        : { ok: true, generation: 1, lease_ms: 60_000 };
    });
    const host = attached(desk, fake.socketPath);
    await arrived();
    busy = true;
    await expect(host.attachment.summarize('sanding')).rejects.toMatchObject({ code: 'store_busy' });
    busy = false;
    await pass(desk.clock, 31_000, 1_000);
    expect(fake.asked.at(-1)).toMatchObject({ type: 'heartbeat', work_summary: 'sanding' });
  });
});

describe('a router of another version', () => {
  it('[SES-079] tells its version where a host registers, which sends its own', async () => {
    const socket = await openRouter(desk, { version: '0.3.0' });
    const fake = await openFakeRouter(desk, () => registered());
    attached(desk, fake.socketPath);
    await arrived();
    expect(fake.asked[0]).toMatchObject({ type: 'register', postbell_version: '0.1.0' });
    const client = await connectRouter(socket, desk);
    const { atMs: _, request_id: __, ...frame } = fake.asked[0] as Record<string, unknown>;
    const answer = await client.request({ ...frame, type: 'register' }, 1_000);
    client.close();
    expect(answer).toMatchObject({ postbell_version: '0.3.0' });
  });

  it('[SES-083] that is newer is used as it is', async () => {
    const socket = await openRouter(desk, { version: '9.0.0' });
    const host = attached(desk, socket);
    await arrived();
    expect(cards()).toMatchObject([{ session_id: 's1' }]);
    expect(host.faults).toEqual([]);
  });

  it.each([
    ['tells no version', () => registered({ postbell_version: undefined })],
    ['tells one that cannot be read', () => registered({ postbell_version: 'latest' })],
    [
      'does not know the word',
      () => ({
        ok: false,
        error: { code: 'unexpected_field', message: 'unexpected field "postbell_version"' },
      }),
    ],
  ])('[SES-082] that %s is refused, with the command that ends it, said once', async (_, answer) => {
    const fake = await openFakeRouter(desk, answer);
    const host = attached(desk, fake.socketPath);
    await pass(desk.clock, 29_000, 1_000);
    expect(codes(host.faults)).toEqual(['router_outdated']);
    expect((host.faults[0] as Fault).message).toContain('kill 4711');
    expect(fake.asked).toHaveLength(1);
    expect(fake.sockets[0]?.destroyed).toBe(true);
    await pass(desk.clock, 62_000, 1_000);
    expect(fake.asked).toHaveLength(4);
    expect(host.faults).toHaveLength(1);
  });

  it('[SES-078] of the wire is a mismatch, for whoever asks it', async () => {
    for (const answer of [
      () => `${JSON.stringify({ v: 2, reply_to: 'r1', status: 'fine' })}\n`,
      () => ({ v: 2, ok: true }),
      () => ({ ok: false, error: { code: 'unsupported_version', message: 'I speak version 2' } }),
    ]) {
      const fake = await openFakeRouter(desk, answer);
      const host = attached(desk, fake.socketPath);
      const calls = routerCalls({ socketPath: fake.socketPath, token: () => 'token' }, desk);
      await expect(calls.discover({ project: 'shop', limit: 5 })).rejects.toMatchObject({
        code: 'router_version_mismatch',
      });
      expect(codes(host.faults)[0]).toBe('router_version_mismatch');
    }
  });
});
