// Target 3: a listener's wake, from the send call in this process to the exit 2 of a real `postbell wait`, by way of
// a real router and the real server of the session.

import { readdirSync, readlinkSync } from 'node:fs';
import path from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { sha256Hex } from '../src/crypto/hash.ts';
import { projectIdentity } from '../src/platform/project.ts';
import { projectId } from '../src/protocol/project.ts';
import { openDesk, sendOne, takeIn } from './desk.ts';
import { alternate, type Metric, median, type Plan, pause, quantile } from './metric.ts';
import { endAll, type Listener, makeHome, startListener, startRouter, startServer } from './program.ts';
import { rawCommits } from './raw-commit.ts';

const settleMs = 300;

/** Resolves once the listener watches for touches, by its open watch where that can be seen. */
export async function armed({ pid }: Listener): Promise<void> {
  const descriptors = `/proc/${pid}/fd`;
  for (let tries = 0; process.platform === 'linux' && tries < 100; tries += 1) {
    if (readdirSync(descriptors).some((name) => watches(path.join(descriptors, name)))) break;
    await pause(10);
  }
  await pause(settleMs);
}

function watches(descriptor: string): boolean {
  try {
    return readlinkSync(descriptor).includes('inotify');
  } catch {
    return false;
  }
}

export async function listenerWake({ directory, program, quick }: Plan): Promise<Metric[]> {
  const home = makeHome(directory, 'listener');
  const project = projectId(await projectIdentity(home.project), sha256Hex);
  await startRouter(program, home);
  const server = await startServer([program, 'mcp'], home, 'session');
  server.initialized();
  await pause(settleMs);
  const desk = await openDesk(home.directory, 'router');
  const prints = new BetterSqlite3(path.join(home.directory, 'postbell.db'));
  const raw = rawCommits(path.join(directory, 'listener-raw'));
  const calls: number[] = [];
  let sent = 0;
  const wake = async (): Promise<number> => {
    const listener = startListener(program, home, 'session');
    await armed(listener);
    const start = performance.now();
    const answer = await sendOne(desk, { project, recipient: 'reader' }, `key-${sent++}`);
    calls.push(performance.now() - start);
    const code = await listener.exit;
    const ms = performance.now() - start;
    if (code !== 2) throw new Error(`the listener ended with ${code}`);
    await takeIn(desk, answer);
    // More than five prints a minute are held back: these are forgotten.
    prints.exec("UPDATE listener_cursor SET prints = '[]'");
    return ms;
  };
  try {
    const values = await alternate(quick ? 9 : 31, 1, { wake, raw: raw.commit });
    return [
      {
        id: '3',
        what: 'wake of a listener: send call to exit 2 of wait, p50',
        unit: 'ms',
        measured: median(values.wake),
        target: 25,
        stretch: 10,
        note: `raw commit ${median(values.raw).toFixed(2)} ms; p90 ${quantile(values.wake, 0.9).toFixed(1)} ms; the send call itself ${median(calls).toFixed(2)} ms`,
      },
    ];
  } finally {
    raw.close();
    prints.close();
    desk.close();
    await endAll();
  }
}
