// Faults that every host can have: of the router, and of the store.

import { spawn } from 'node:child_process';
import { mkdirSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { bundle } from '../../../tools/build.mjs';
import { until } from '../../process/home.ts';
import { alive, answer, type Env, postbell, program, root, stopRouter } from '../../process/postbell.ts';
import { discovered, look, type ModelView, type Place, type Who } from './observe.ts';
import { contradictions } from './rules.ts';

interface Router {
  pid: number;
  postbell_version: string;
}

const statusOf = async ({ env, cwd }: Place): Promise<Router | undefined> => {
  const { code, stdout } = await postbell(env, cwd, ['router', 'status']);
  return code === 0 ? (JSON.parse(stdout) as Router) : undefined;
};

export const projectOf = async (env: Env, cwd: string): Promise<string> =>
  (await answer(env, cwd, ['send', 'nobody', '--json'], 'which project is this')).project as string;

export const live = (place: Place, who: Who, is = 'live'): Promise<void> =>
  until(`it is ${is}`, async () => (await discovered(place, who)).session === is, 20_000);

/**
 * Kills the router. What is told while there is none, or while the next one knows nobody, must agree; then a new one runs, and
 * the session is live again by itself.
 */
export async function killRouter(place: Place, who: Who, model: ModelView): Promise<void> {
  const former = (await statusOf(place)) as Router;
  process.kill(former.pid, 'SIGKILL');
  await until('it is gone', () => !alive(former.pid));
  const atOnce = await look(place, who, model, { until: 'nothing' });
  const found = contradictions(atOnce);
  if (found.length > 0) throw new Error(`while no router ran: ${found.join('; ')} ${JSON.stringify(atOnce)}`);
  await until('another one runs', async () => ((await statusOf(place))?.pid ?? former.pid) !== former.pid);
  await live(place, who);
}

/** A router of a former version, with nobody else running. @returns once the one of this version has taken its place */
export async function formerRouter(
  { env, cwd }: Place,
  dir: string,
  atEnd: (then: () => unknown) => void,
): Promise<() => Promise<void>> {
  const at = path.join(dir, 'former');
  mkdirSync(at);
  symlinkSync(path.join(root, 'node_modules'), path.join(at, 'node_modules'));
  await bundle(path.join(at, 'dist'), '0.0.9');
  await stopRouter(env, cwd);
  const words = [path.join(at, 'dist', 'postbell.cjs'), 'router'];
  const child = spawn(process.execPath, words, { cwd, env, stdio: 'ignore' });
  atEnd(() => child.kill('SIGKILL'));
  const place = { env, cwd, project: '' };
  await until('the former one runs', async () => (await statusOf(place))?.postbell_version === '0.0.9');
  return () =>
    until(
      'the newer one has taken its place',
      async () => (await statusOf(place))?.postbell_version === '0.1.0' && !alive(child.pid as number),
    );
}

/** A router of nobody's own, where none runs: one that a session started is ended with the session here. */
export async function haveRouter(place: Place, atEnd: (then: () => unknown) => void): Promise<void> {
  if ((await statusOf(place)) !== undefined) return;
  const { env, cwd } = place;
  const child = spawn(process.execPath, [program, 'router'], { cwd, env, stdio: 'ignore' });
  atEnd(() => child.kill('SIGKILL'));
  await until('a router runs', async () => (await statusOf(place)) !== undefined);
}

/** Nobody else can write while it runs. */
export async function whileLocked<T>(data: string, run: () => Promise<T>): Promise<T> {
  const store = new BetterSqlite3(path.join(data, 'postbell.db'));
  store.exec('BEGIN IMMEDIATE');
  try {
    return await run();
  } finally {
    store.exec('ROLLBACK');
    store.close();
  }
}
