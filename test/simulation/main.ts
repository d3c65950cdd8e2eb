// `npm run simulate`: one seed, or new seeds until the time is over.

import { availableParallelism, cpus, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { type Outcome, simulate } from './run.ts';
import { Tally } from './tally.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    steps: { type: 'string', default: '50000' },
    nightly: { type: 'string' },
  },
});

const whole = (name: string, text: string): number => {
  if (!/^\d+$/.test(text)) throw new Error(`--${name} takes a whole number`);
  return Number(text);
};

const say = (text: string): void => void process.stdout.write(`${text}\n`);

function report({ seed, steps, failure, trace }: Outcome, asked: number): void {
  if (failure === undefined) return;
  say(`\nBROKEN: ${failure.checker}\nseed ${seed}, step ${failure.step} of ${steps}\n${failure.text}\n`);
  for (const line of trace) say(`  ${line}`);
  say(`\nagain: npm run simulate -- --seed ${seed} --steps ${asked}`);
  process.exitCode = 1;
}

const rate = (steps: number, seconds: number, cpuSeconds: number): string =>
  `${Math.round(steps / seconds)} steps/s (${Math.round(steps / cpuSeconds)} a second of processor time)`;

/** What a rate was measured under. */
function conditions(): string {
  const model = cpus()[0]?.model ?? 'unknown';
  return `Node ${process.version}, ${availableParallelism()} cores (${model}), load ${loadavg()[0]?.toFixed(1)}; nothing is flushed`;
}

async function once(seed: number, steps: number): Promise<void> {
  const outcome = await simulate(seed, steps);
  say(
    `seed ${seed}, ${outcome.steps} steps, ${rate(outcome.steps, outcome.seconds, outcome.cpuSeconds)}, trace ${outcome.hash}`,
  );
  say(`${Math.round(outcome.simulatedMs / 1_000)} s simulated in ${outcome.seconds.toFixed(1)} s`);
  say(conditions());
  for (const line of outcome.tally.lines()) say(line);
  report(outcome, steps);
}

/** Seeds from `first` on; stops at the first that fails. */
async function nightly(first: number, steps: number, minutes: number): Promise<void> {
  const beginMs = performance.now();
  const tally = new Tally();
  let done = 0;
  let seconds = 0;
  let cpuSeconds = 0;
  let seed = first;
  for (; performance.now() - beginMs < minutes * 60_000 && process.exitCode === undefined; seed += 1) {
    const outcome = await simulate(seed, steps);
    done += outcome.steps;
    seconds += outcome.seconds;
    cpuSeconds += outcome.cpuSeconds;
    tally.add(outcome.tally);
    report(outcome, steps);
  }
  say(`seeds ${first} to ${seed - 1}, ${done} steps, ${rate(done, seconds, cpuSeconds)}`);
  say(conditions());
  for (const line of tally.lines()) say(line);
}

const seed = whole('seed', values.seed);
const steps = whole('steps', values.steps);
await (values.nightly === undefined ? once(seed, steps) : nightly(seed, steps, Number(values.nightly)));
