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
      for (const job of due()) await desk.store.write((tx) => jobAccepted(tx, job));
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
    for (const job of due()) await desk.store.write((tx) => jobAccepted(tx, job));
    expect([dueKeys(), next(), desk.counts().control_job]).toEqual([[], undefined, 0]);
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
    await desk.store.write((tx) => jobAccepted(tx, former as ControlJob));
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
