// What `npm run simulate` does with a simulation: one seed, or new ones until the time is over or one fails.

import { parseArgs } from 'node:util';
import { Tally } from './tally.ts';

interface Outcome {
  seed: number;
  steps: number;
  failure: { checker: string; text: string; step: number } | undefined;
  trace: readonly string[];
  tally: Tally;
}

export interface Simulated<O extends Outcome> {
  /** Where none is given. */
  steps: string;
  /** The command that does it again, up to its seed. */
  command: string;
  simulate(seed: number, steps: number): Promise<O>;
  /** Of one that was run alone, and of many together. */
  lines(outcome: O): string[];
  linesOfAll(seeds: string, steps: number): string[];
  /** What stands below the trace of a failure. */
  state?(outcome: O): readonly string[];
}

const whole = (name: string, text: string): number => {
  if (!/^\d+$/.test(text)) throw new Error(`--${name} takes a whole number`);
  return Number(text);
};

const say = (lines: readonly string[]): void => void process.stdout.write(`${lines.join('\n')}\n`);

export async function byCommand<O extends Outcome>(of: Simulated<O>): Promise<void> {
  const { values } = parseArgs({
    options: {
      link: { type: 'boolean' },
      seed: { type: 'string', default: '1' },
      steps: { type: 'string', default: of.steps },
      nightly: { type: 'string' },
    },
  });
  const seed = whole('seed', values.seed);
  const steps = whole('steps', values.steps);
  if (values.nightly !== undefined) return nightly(of, seed, steps, Number(values.nightly));
  const outcome = await of.simulate(seed, steps);
  say([...of.lines(outcome), ...outcome.tally.lines()]);
  report(of, outcome, steps);
}

function report<O extends Outcome>(of: Simulated<O>, outcome: O, asked: number): void {
  const { seed, steps, failure, trace } = outcome;
  if (failure === undefined) return;
  const state = of.state?.(outcome);
  say([
    `\nBROKEN: ${failure.checker}\nseed ${seed}, step ${failure.step} of ${steps}\n${failure.text}\n`,
    ...[...trace, ...(state === undefined ? [] : ['', ...state])].map((line) => `  ${line}`),
    `\nagain: ${of.command} --seed ${seed} --steps ${asked}`,
  ]);
  process.exitCode = 1;
}

/** Seeds from `first` on; stops at the first that fails. */
async function nightly<O extends Outcome>(
  of: Simulated<O>,
  first: number,
  steps: number,
  minutes: number,
): Promise<void> {
  const beginMs = performance.now();
  const tally = new Tally();
  let done = 0;
  let seed = first;
  for (; performance.now() - beginMs < minutes * 60_000 && process.exitCode === undefined; seed += 1) {
    const outcome = await of.simulate(seed, steps);
    done += outcome.steps;
    tally.add(outcome.tally);
    report(of, outcome, steps);
  }
  say([...of.linesOfAll(`seeds ${first} to ${seed - 1}`, done), ...tally.lines()]);
}
