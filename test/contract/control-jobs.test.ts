// Pairing records on their way: each for itself, ever more seldom where nobody takes it, and gone when a relay has it.

import { beforeEach, describe, expect, it } from 'vitest';
import { dueJobs, jobAccepted, jobFailed, nextJobMs, putJob, roomFor } from '../../src/peers/control.ts';
import type { ControlJob } from '../../src/ports/pairing.ts';
import { limits } from '../../src/protocol/limits.ts';
import { noonMs } from './clock.ts';
import { openScene, refused, type Scene } from './desk.ts';

let desk: Scene;
beforeEach(async () => {
  desk = await openScene();
});

const key = (of: string): string => of.repeat(43);
const newJob = (of: string, over: object = {}) => ({
  kind: 'pair_request' as const,
  peer_key: key(of),
  queue: of.charCodeAt(0).toString(16).padStart(32, '0'),
  relays: [`https://${of}.example`],
  record_id: '00112233-4455-6677-8899-aabbccddeeff',
  name: 'alice',
  ...over,
});
const put = (of: string, over: object = {}) =>
  desk.store.write((tx) => putJob(tx, { random: desk.random, nowMs: desk.clock.nowMs() }, newJob(of, over)));
const due = (): ControlJob[] => desk.store.read((tx) => dueJobs(tx, desk.clock.nowMs(), 10));
const dueKeys = () => due().map(({ peer_key }) => peer_key[0]);
const failed = (job: ControlJob, jitter = 0) =>
  desk.store.write((tx) => jobFailed(tx, job, desk.clock.nowMs(), 'nobody answers', jitter));
const next = () => desk.store.read((tx) => nextJobMs(tx, desk.clock.nowMs()));

describe('a control job', () => {
  it('[PEER-045] that cannot go out holds up no other: 2 s at first, then doubling to 300 s, until a relay takes it', async () => {
    await put('a');
    await put('d');
    await put('z');
    expect(dueKeys()).toEqual(['a', 'd', 'z']);
    const waits: number[] = [];
    for (let attempt = 0; attempt < 10; attempt += 1) {
      const [dead] = due().filter(({ peer_key }) => peer_key === key('d'));
      await failed(dead as ControlJob);
      // The others are taken at once, whatever becomes of the dead one.
      for (const job of due()) await desk.store.write((tx) => jobAccepted(tx, job, desk.clock.nowMs()));
      if (attempt > 0) await put(String(attempt));
      const waitMs =
        (desk.rows(`SELECT next_ms FROM control_job WHERE peer_key = ?`, key('d'))[0]?.next_ms as number) -
        desk.clock.nowMs();
      waits.push(waitMs / 1_000);
      await desk.clock.advance(waitMs - 1);
      expect(dueKeys()).not.toContain('d');
      await desk.clock.advance(1);
      expect(dueKeys()).toContain('d');
    }
    expect(waits).toEqual([2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
    const [dead] = due().filter(({ peer_key }) => peer_key === key('d'));
    expect(dead).toMatchObject({ attempts: 10, last_error: 'nobody answers' });
    for (const job of due()) await desk.store.write((tx) => jobAccepted(tx, job, desk.clock.nowMs()));
    expect(dueKeys()).toEqual([]);
    expect(desk.rows('SELECT DISTINCT accepted_ms IS NULL AS waits, attempts FROM control_job')).toEqual([
      { waits: 0, attempts: 0 },
    ]);
  });

  it('that a relay took goes out again before it lets it go, for 7 days: the other machine may be off; a confirmation does not', async () => {
    const beganMs = desk.clock.nowMs();
    await put('a');
    await put('b', { kind: 'pair_accept', request_id: '00112233-4455-6677-8899-aabbccddeeff' });
    await put('c', { kind: 'route', name: undefined });
    const wentAt: Record<string, number[]> = { a: [], b: [], c: [] };
    for (;;) {
      for (const job of due()) {
        wentAt[job.peer_key[0] as string]?.push((desk.clock.nowMs() - beganMs) / 3_600_000);
        await desk.store.write((tx) => jobAccepted(tx, job, desk.clock.nowMs()));
      }
      const nextMs = next();
      if (nextMs === undefined || nextMs >= beganMs + limits.controlKeptMs) break;
      await desk.clock.advance(nextMs - desk.clock.nowMs());
    }
    const everyTwentyHours = [0, 20, 40, 60, 80, 100, 120, 140, 160];
    expect(wentAt).toEqual({ a: everyTwentyHours, b: [0], c: everyTwentyHours });
    await desk.clock.advance(beganMs + limits.controlKeptMs - desk.clock.nowMs());
    expect([dueKeys(), next()]).toEqual([[], undefined]);
  });

  it('that a relay took takes no room, and waits out no clock that was set back', async () => {
    await put('a');
    const [sent] = due();
    await desk.store.write((tx) => jobAccepted(tx, sent as ControlJob, desk.clock.nowMs()));
    expect(dueKeys()).toEqual([]);
    for (let n = 0; n < limits.controlJobsMax; n += 1) {
      const job = newJob('b', { queue: String(n).padStart(32, '0') });
      expect(await desk.store.write((tx) => roomFor(tx, desk.clock.nowMs(), job))).toBeUndefined();
      await put('b', { queue: job.queue });
    }
    desk.clock.jump(-3 * 24 * 3_600_000);
    const all = desk.store.read((tx) => dueJobs(tx, desk.clock.nowMs(), 2 * limits.controlJobsMax));
    expect(all.map(({ peer_key }) => peer_key)).toContain(key('a'));
  });

  it('waits a fifth longer at most, and never beyond 300 s', async () => {
    await put('a');
    for (const [jitter, wait] of [
      [1, 2_400],
      [0.5, 4_400],
      [0, 8_000],
    ] as const) {
      await failed(due()[0] as ControlJob, jitter);
      expect((next() as number) - desk.clock.nowMs()).toBe(wait);
      await desk.clock.advance(wait);
    }
    for (let tries = 0; tries < 8; tries += 1) {
      await failed(due()[0] as ControlJob, 1);
      await desk.clock.advance((next() as number) - desk.clock.nowMs());
    }
    await failed(due()[0] as ControlJob, 1);
    expect((next() as number) - desk.clock.nowMs()).toBe(300_000);
  });

  it('is sent no more 7 days after it was made, and then takes no room', async () => {
    await put('a');
    await desk.clock.advance(limits.controlKeptMs - 1);
    expect(dueKeys()).toEqual(['a']);
    await desk.clock.advance(1);
    expect([dueKeys(), next()]).toEqual([[], undefined]);
    await desk.store.write((tx) => roomFor(tx, desk.clock.nowMs(), newJob('b')));
    expect(desk.counts().control_job).toBe(0);
  });

  it('that was replaced while it was being sent is neither removed nor held back by what became of the former', async () => {
    await put('a');
    const [former] = due();
    await put('a', { name: 'another' });
    await desk.store.write((tx) => jobAccepted(tx, former as ControlJob, desk.clock.nowMs()));
    await failed(former as ControlJob);
    expect(due()).toMatchObject([{ name: 'another', attempts: 0, next_ms: noonMs }]);
  });

  it('finds room among 128, or in the place of its own kind to the same queue; routes take none of it', async () => {
    for (let n = 0; n < limits.controlJobsMax - 1; n += 1)
      await put('a', { queue: String(n).padStart(32, '0') });
    await put('r', { kind: 'route' });
    const room = (of: string, over: object = {}) =>
      desk.store.write((tx) => roomFor(tx, desk.clock.nowMs(), newJob(of, over)));
    expect(await room('b')).toBeUndefined();
    await put('b');
    expect(refused(await room('c')).code).toBe('outbox_full');
    expect(refused(await room('b', { kind: 'pair_accept' })).code).toBe('outbox_full');
    expect(await room('b')).toBeUndefined();
  });
});
