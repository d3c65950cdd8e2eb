// Target 9: how often an idle session, its listener and the router wake up, by the voluntary context switches of
// their event loop's thread; those of all threads, which V8 adds to, are noted.

import { readdirSync, readFileSync } from 'node:fs';
import { armed } from './listener.ts';
import type { Outcome, Plan } from './metric.ts';
import { pause } from './metric.ts';
import { endAll, makeHome, startListener, startRouter, startServer } from './program.ts';

/** V8 tidies its heap for some seconds after a start; that is not idling. */
const settleMs = 15_000;
const targets = { mcp: [4, 0], wait: [35, 30], router: [70, 60] } as const;

export async function idleWakeUps({ directory, program, quick }: Plan): Promise<Outcome[]> {
  const what = (name: string): string => `wake-ups of an idle ${name}`;
  const names = ['mcp', 'wait', 'router'] as const;
  if (process.platform !== 'linux')
    return names.map((name) => ({ id: '9', what: what(name), why: 'needs /proc (Linux)' }));
  const home = makeHome(directory, 'idle');
  const router = await startRouter(program, home);
  const mcp = await startServer([program, 'mcp'], home, 'session');
  mcp.initialized();
  const listener = startListener(program, home, 'session');
  await armed(listener);
  await pause(settleMs);
  const pids = { mcp: mcp.pid, wait: listener.pid, router: router.pid };
  const before = names.map((name) => wakeUps(pids[name]));
  const seconds = quick ? 20 : 60;
  await pause(seconds * 1_000);
  const after = names.map((name) => wakeUps(pids[name]));
  await endAll();
  const perMinute = (index: number, which: 'loop' | 'all'): number =>
    (((after[index]?.[which] ?? 0) - (before[index]?.[which] ?? 0)) * 60) / seconds;
  return names.map((name, index) => ({
    id: `9 ${name}`,
    what: what(name),
    unit: 'a minute',
    measured: perMinute(index, 'loop'),
    target: targets[name][0],
    stretch: targets[name][1],
    note: `all threads ${perMinute(index, 'all').toFixed(0)}`,
  }));
}

function wakeUps(pid: number): { loop: number; all: number } {
  const counts = readdirSync(`/proc/${pid}/task`).map((task) => ({ task, count: switches(pid, task) }));
  return {
    loop: counts.find(({ task }) => task === String(pid))?.count ?? 0,
    all: counts.reduce((sum, { count }) => sum + count, 0),
  };
}

function switches(pid: number, task: string): number {
  const status = readFileSync(`/proc/${pid}/task/${task}/status`, 'utf8');
  return Number(/^voluntary_ctxt_switches:\s+(\d+)$/m.exec(status)?.[1] ?? 0);
}
