// `postbell demo`: the story of one message, by real processes in a throw-away home that is gone afterwards.

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { systemClock } from '../platform/clock.ts';
import { ownEnvironment, processEnvironment } from '../platform/environment.ts';
import { Fault } from '../protocol/errors.ts';
import { killed, run, type Stage } from '../surfaces/demo/actors.ts';
import { tell } from '../surfaces/demo/story.ts';
import { endingSignals } from './ending.ts';
import { orFail } from './failure.ts';
import { projectOf } from './project.ts';

export function main(words: readonly string[]): Promise<void> {
  return orFail(words, async (rest) => {
    if (rest.length > 0) throw new Fault('usage', 'demo takes no words');
    await play();
  });
}

async function play(): Promise<void> {
  const home = throwAwayHome();
  const project = path.join(home, 'demo');
  mkdirSync(project);
  const stage: Stage = {
    command: [process.execPath, path.join(__dirname, 'postbell.cjs')],
    cwd: project,
    project: await projectOf(project),
    env: environmentOf(home, project),
    clock: systemClock,
    cast: new Set(),
    over: false,
  };
  let ending: Promise<void> | undefined;
  const end = (): Promise<void> => {
    ending ??= endOf(stage, home);
    return ending;
  };
  // Nobody listens to the story any more.
  process.stdout.on('error', () => void end().finally(() => process.exit(1)));
  for (const signal of endingSignals) process.on(signal, () => void end().finally(() => process.exit(1)));
  try {
    const whole = await tell(stage, (text) => process.stdout.write(`${text}\n`));
    if (!whole) process.exitCode = 1;
  } finally {
    await end();
  }
}

function throwAwayHome(): string {
  try {
    return mkdtempSync(path.join(tmpdir(), 'postbell-demo-'));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new Fault('store_unwritable', `no directory can be made in ${tmpdir()} (${code})`, {
      cause: error,
    });
  }
}

/** Nothing of a real store, session or host. */
function environmentOf(home: string, project: string): Record<string, string> {
  const kept = Object.entries(ownEnvironment(processEnvironment)).filter(
    ([name]) => !name.startsWith('POSTBELL_') && !name.startsWith('XDG_'),
  );
  return {
    ...Object.fromEntries(kept),
    HOME: home,
    POSTBELL_HOME: path.join(home, 'data'),
    CLAUDE_PROJECT_DIR: project,
  };
}

/** A server that is killed may just have started a router of its own, which takes a moment to be found. */
const routerGraceMs = 300;
const rounds = 3;

/** Once, whoever asks: the actors first, so that none of them starts another router; then the router that runs. */
async function endOf(stage: Stage, home: string): Promise<void> {
  stage.over = true;
  await Promise.all([...stage.cast].map(killed));
  const backstage: Stage = { ...stage, over: false };
  for (let round = 0; round < rounds; round += 1) {
    await run(backstage, ['router', 'stop']).catch(() => {});
    await new Promise<void>((resolve) => stage.clock.after(routerGraceMs, resolve));
  }
  rmSync(home, { recursive: true, force: true, maxRetries: 5 });
}
