// Target 9: how often idle processes wake up, by the voluntary context switches of their event loop's thread; those of all
// threads, which V8 adds to, are noted. Beside them the router's with fifty sessions, and what it holds then.

import { readdirSync, readFileSync } from 'node:fs';
import { attach, openDesk } from './desk.ts';
import { armed } from './listener.ts';
import { privateMebibytes } from './memory.ts';
import type { Metric, Outcome, Plan } from './metric.ts';
import { pause } from './metric.ts';
import { endAll, makeHome, startCompanion, startListener, startRouter, startServer } from './program.ts';

/** V8 tidies its heap for some seconds after a start; that is not idling. */
const settleMs = 15_000;
const targets = { mcp: [4, 0], wait: [35, 30], router: [70, 60], companion: [] } as const;
type Name = keyof typeof targets;
const many = 50;

const notHere = (what: string): Outcome => ({ id: '9', what, why: 'needs /proc (Linux)' });

export async function idleWakeUps({ directory, program, quick }: Plan): Promise<Outcome[]> {
  const names = Object.keys(targets) as Name[];
  const what = (name: string): string => `wake-ups of an idle ${name}`;
  if (process.platform !== 'linux') return names.map((name) => notHere(what(name)));
  const home = makeHome(directory, 'idle');
  const router = await startRouter(program, home);
  const mcp = await startServer([program, 'mcp'], home, 'session');
  mcp.initialized();
  const companion = await startCompanion(program, home, '0199aaaa-0000-7000-8000-000000000001');
  const listener = startListener(program, home, 'session');
  await armed(listener);
  const pids = { mcp: mcp.pid, wait: listener.pid, router: router.pid, companion: companion.pid };
  const counts = await overTime(
    names.map((name) => pids[name]),
    quick,
  );
  await endAll();
  return names.map((name, index) => {
    const [target, stretch] = targets[name];
    return {
      ...perMinute(`9 ${name}`, what(name), counts[index]),
      ...(target !== undefined && { target, stretch }),
    };
  });
}

export async function fiftySessions({ directory, program, quick }: Plan): Promise<Outcome[]> {
  const what = `router with ${many} idle sessions`;
  if (process.platform !== 'linux') return [notHere(what)];
  const home = makeHome(directory, 'fifty');
  const router = await startRouter(program, home);
  const alone = privateMebibytes(router.pid);
  const desk = await openDesk(home.directory, 'router');
  const attachments = Array.from({ length: many }, (_, n) => attach(desk, `session-${n}`));
  const [counts] = await overTime([router.pid], quick);
  const held = privateMebibytes(router.pid);
  for (const attachment of attachments) await attachment.close();
  desk.close();
  await endAll();
  return [
    perMinute('9 fifty', `wake-ups of a ${what}`, counts),
    {
      id: '8 fifty',
      what: `private memory of a ${what}`,
      unit: 'MiB',
      measured: held,
      note: `${alone.toFixed(1)} MiB without any`,
    },
  ];
}

interface Counts {
  loop: number;
  all: number;
}

const perMinute = (id: string, what: string, counts: Counts | undefined): Metric => ({
  id,
  what,
  unit: 'a minute',
  measured: counts?.loop ?? Number.NaN,
  note: `all threads ${counts?.all.toFixed(0)}`,
});

/** Of each process, a minute, once it is at ease. */
async function overTime(pids: readonly number[], quick: boolean): Promise<Counts[]> {
  await pause(settleMs);
  const before = pids.map(wakeUps);
  const seconds = quick ? 20 : 60;
  await pause(seconds * 1_000);
  return pids.map((pid, index) => {
    const [then, now] = [before[index] as Counts, wakeUps(pid)];
    const scale = 60 / seconds;
    return { loop: (now.loop - then.loop) * scale, all: (now.all - then.all) * scale };
  });
}

function wakeUps(pid: number): Counts {
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
