// Target 7: private memory of one idle session, beside the least that could serve it. What a bare node holds that
// waits for input is noted.

import { readFileSync } from 'node:fs';
import path from 'node:path';
import { alternate, median, type Outcome, type Plan, pause } from './metric.ts';
import { endAll, makeHome, type Server, startRouter, startServer } from './program.ts';

const settleMs = 2_000;

/** Answers once and idles, without any library: what a node process holds by itself. */
const bareEcho = `process.stdin.once('data', () => process.stdout.write('{}\\n')).on('end', () => process.exit(0))`;

export async function idleMemory({ directory, program, quick }: Plan): Promise<Outcome[]> {
  const id = '7';
  const what = 'private memory of an idle mcp session';
  if (process.platform !== 'linux') return [{ id, what, why: 'needs /proc (Linux)' }];
  const home = makeHome(directory, 'memory');
  await startRouter(program, home);
  const held = async (server: Server): Promise<number> => {
    server.initialized();
    await pause(settleMs);
    const mebibytes = privateMebibytes(server.pid);
    await server.end();
    return mebibytes;
  };
  const idle = (...words: string[]) => startServer(words, home, 'session').then(held);
  const bareServer = path.join(__dirname, 'bare-server.cjs');
  const values = await alternate(quick ? 2 : 5, 0, {
    node: () => idle('-e', bareEcho),
    bare: () => idle(bareServer, path.join(home.directory, 'postbell.db')),
    mcp: () => idle(program, 'mcp'),
  });
  await endAll();
  return [
    {
      id,
      what,
      unit: 'MiB',
      measured: median(values.mcp),
      yardstick: { what: 'hand-written server', value: median(values.bare) },
      target: 3.5,
      stretch: 2,
      note: `a bare node ${median(values.node).toFixed(1)} MiB`,
    },
  ];
}

export function privateMebibytes(pid: number): number {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
  const kibibytes = [...text.matchAll(/^Private_(?:Clean|Dirty):\s+(\d+) kB$/gm)].map((found) =>
    Number(found[1]),
  );
  return kibibytes.reduce((sum, value) => sum + value, 0) / 1_024;
}
