// What an idle listener costs, with a server beside it and without one.

import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Listening, openListening } from './listener.ts';

let scene: Listening;
beforeEach(async () => {
  scene = await openListening();
});
afterEach(() => scene.home.end());

const measureMs = 60_000;
/** Of proc(5): 100 a second on every Linux. */
const ticksASecond = 100;

const cpuMs = (pid: number): number => {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return ((Number(fields[11]) + Number(fields[12])) * 1_000) / ticksASecond;
};
const residentKib = (pid: number): number =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);

describe.skipIf(process.platform !== 'linux')('an idle listener', () => {
  it('[HOST-106] loads nothing but the store driver, is under 60 MB and takes under 0.5 % of one core', async () => {
    const beside = scene.listener();
    await scene.armed();
    const alone = scene.home.start(['wait', '--session', 'alone']);
    alone.child.stdin?.end('');
    await new Promise((resolve) => setTimeout(resolve, 5_000));
    const both = [beside, alone];
    const before = both.map(({ pid }) => cpuMs(pid));
    await new Promise((resolve) => setTimeout(resolve, measureMs));
    for (const [index, { pid, child }] of both.entries()) {
      expect(child.exitCode).toBeNull();
      expect(cpuMs(pid) - (before[index] as number)).toBeLessThan(measureMs * 0.005);
      expect(residentKib(pid) * 1_024).toBeLessThan(60_000_000);
      const mapped = readFileSync(`/proc/${pid}/maps`, 'utf8').match(/\S+\.node$/gm) ?? [];
      expect(new Set(mapped.map((file) => file.split('/').at(-1)))).toEqual(new Set(['better_sqlite3.node']));
    }
  }, 90_000);
});
