// `npm run simulate -- --link`: one seed, or new seeds until the time is over.

import { parseArgs } from 'node:util';
import { Tally } from '../tally.ts';
import { type LinkOutcome, simulateLink } from './run.ts';

const { values } = parseArgs({
  options: {
    link: { type: 'boolean' },
    seed: { type: 'string', default: '1' },
    steps: { type: 'string', default: '4000' },
    nightly: { type: 'string' },
  },
});

const whole = (name: string, text: string): number => {
  if (!/^\d+$/.test(text)) throw new Error(`--${name} takes a whole number`);
  return Number(text);
};

const say = (text: string): void => void process.stdout.write(`${text}\n`);

function report({ seed, steps, failure, trace, state }: LinkOutcome, asked: number): void {
  if (failure === undefined) return;
  say(`\nBROKEN: ${failure.checker}\nseed ${seed}, step ${failure.step} of ${steps}\n${failure.text}\n`);
  for (const line of [...trace, '', ...state]) say(`  ${line}`);
  say(`\nagain: npm run simulate -- --link --seed ${seed} --steps ${asked}`);
  process.exitCode = 1;
}

async function once(seed: number, steps: number): Promise<void> {
  const outcome = await simulateLink(seed, steps);
  const minutes = Math.round(outcome.simulatedMs / 60_000);
  say(
    `seed ${seed}, ${outcome.steps} steps, ${minutes} min simulated in ${outcome.seconds.toFixed(1)} s, trace ${outcome.hash}`,
  );
  for (const line of outcome.tally.lines()) say(line);
  report(outcome, steps);
}

/** Seeds from `first` on; stops at the first that fails. */
async function nightly(first: number, steps: number, minutes: number): Promise<void> {
  const beginMs = performance.now();
  const tally = new Tally();
  let done = 0;
  let seed = first;
  for (; performance.now() - beginMs < minutes * 60_000 && process.exitCode === undefined; seed += 1) {
    const outcome = await simulateLink(seed, steps);
    done += outcome.steps;
    tally.add(outcome.tally);
    report(outcome, steps);
  }
  say(`seeds ${first} to ${seed - 1}, ${done} steps`);
  for (const line of tally.lines()) say(line);
}

const seed = whole('seed', values.seed);
const steps = whole('steps', values.steps);
await (values.nightly === undefined ? once(seed, steps) : nightly(seed, steps, Number(values.nightly)));
