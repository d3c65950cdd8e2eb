// What an idle listener costs, with a server beside it and without one.

import { execFileSync, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Listening, openListening } from './listener.ts';
import { program } from './postbell.ts';

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

/** A listener whose stdin is a pipe that nobody ever closes. */
function withInputHeldOpen() {
  const pipe = path.join(scene.home.dir, 'pipe');
  execFileSync('mkfifo', [pipe]);
  const both = openSync(pipe, 'r+');
  const child = spawn(process.execPath, [program, 'wait', '--session', 'held'], {
    stdio: [both, 'ignore', 'ignore'],
    cwd: scene.home.project,
    env: scene.home.env,
  });
  closeSync(both);
  scene.home.atEnd(() => child.kill('SIGKILL'));
  return child;
}

describe.skipIf(process.platform !== 'linux')('an idle listener', () => {
  it('[HOST-106] loads nothing but the store driver, is under 60 MB and takes under 0.5 % of one core', async () => {
    const beside = scene.listener();
    await scene.armed();
    const alone = scene.home.start(['wait', '--session', 'alone']);
    alone.child.stdin?.end('');
    const held = withInputHeldOpen();
    await new Promise((resolve) => setTimeout(resolve, 7_000));
    const all = [beside, alone, { pid: held.pid as number, child: held }];
    const before = all.map(({ pid }) => cpuMs(pid));
    await new Promise((resolve) => setTimeout(resolve, measureMs));
    for (const [index, { pid, child }] of all.entries()) {
      expect(child.exitCode).toBeNull();
      expect(cpuMs(pid) - (before[index] as number)).toBeLessThan(measureMs * 0.005);
      expect(residentKib(pid) * 1_024).toBeLessThan(60_000_000);
      const mapped = readFileSync(`/proc/${pid}/maps`, 'utf8').match(/\S+\.node$/gm) ?? [];
      expect(new Set(mapped.map((file) => file.split('/').at(-1)))).toEqual(new Set(['better_sqlite3.node']));
    }
  }, 90_000);
});
