// Somebody removes the directory of locks and touches under processes that go on.

import { spawn } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { runNotifier } from '../../src/mailbox/notifier.ts';
import { fileWake } from '../../src/platform/wake.ts';
import { locksIn } from '../../src/store/lock.ts';
import { settle } from './clock.ts';
import { atEnd, posted, temporaryDirectory } from './desk.ts';
import { fault, openRung, type Rung, ringing } from './rung.ts';

let rung: Rung;
let runtime: string;
beforeEach(async () => {
  rung = await openRung();
  runtime = path.join(temporaryDirectory(), 'runtime');
  mkdirSync(runtime);
});

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

describe('a lock whose file was removed', () => {
  it('is not held any more, and is taken anew at a path that is made again', () => {
    const locks = locksIn(runtime);
    const first = locks.tryTake('x');
    expect([first?.held(), locks.tryTake('x')]).toEqual([true, undefined]);
    rmSync(runtime, { recursive: true });
    expect(first?.held()).toBe(false);
    const second = locks.tryTake('x');
    expect([first?.held(), second?.held()]).toEqual([false, true]);
    first?.release();
    expect([second?.held(), locks.tryTake('x')]).toEqual([true, undefined]);
    second?.release();
  });

  it('is taken also while somebody removes the directory again and again', async () => {
    const remover = spawn('sh', ['-c', `while :; do rm -rf '${runtime}'; sleep 0.001; done`], {
      stdio: 'ignore',
    });
    atEnd(() => remover.kill('SIGKILL'));
    for (let nth = 0; nth < 1_500; nth += 1) {
      const lock = locksIn(runtime).tryTake('x');
      expect(lock).toBeDefined();
      lock?.release();
    }
    remover.kill('SIGKILL');
    await new Promise((resolve) => remover.on('close', resolve));
  });

  it('leaves one notifier of a session: the older rings no more where another came in', async () => {
    const { desk, bell } = rung;
    const rings: string[] = [];
    const named = (name: string) => ({
      ...bell,
      ring: async (...call: Parameters<typeof bell.ring>) => {
        rings.push(name);
        return bell.ring(...call);
      },
    });
    const start = (name: string) => {
      const notifier = runNotifier(desk, locksIn(runtime), ringing, named(name), fault);
      atEnd(() => notifier.stop());
      return notifier;
    };
    const older = start('older');
    await posted(desk);
    await settle();
    expect(rings).toEqual(['older']);
    rmSync(runtime, { recursive: true });
    const newer = start('newer');
    await settle();
    await desk.clock.advance(120_000);
    expect(rings).toEqual(['older', 'newer', 'newer']);
    expect(rung.rungAt()).toEqual([0, 30, 90]);
    newer.stop();
    await desk.clock.advance(121_000);
    expect(rings.slice(3)).toEqual(['older']);
    older.stop();
  });
});

describe('a watch whose directory was removed', () => {
  it.each([0, 400])('tells of touches again once the directory is there, %d ms later', async (ms) => {
    const wake = fileWake(path.join(runtime, 'mail'));
    wake.touch();
    let touches = 0;
    const stop = wake.watch(() => {
      touches += 1;
    });
    atEnd(stop);
    await pause(100);
    touches = 0;
    rmSync(runtime, { recursive: true });
    if (ms > 0) await pause(ms);
    expect(touches > 0).toBe(ms > 0);
    fileWake(path.join(runtime, 'mail')).touch();
    await pause(800);
    expect(touches).toBeGreaterThan(0);
    touches = 0;
    fileWake(path.join(runtime, 'mail')).touch();
    await pause(800);
    expect(touches).toBeGreaterThan(0);
  });
});
