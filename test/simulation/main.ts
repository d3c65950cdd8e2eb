// `npm run simulate`: one machine.

import { availableParallelism, cpus, loadavg } from 'node:os';
import { byCommand } from './by-command.ts';
import { simulate } from './run.ts';

/** Of all that was run. */
const took = { seconds: 0, cpuSeconds: 0 };

const rate = (steps: number, { seconds, cpuSeconds }: typeof took): string =>
  `${Math.round(steps / seconds)} steps/s (${Math.round(steps / cpuSeconds)} a second of processor time)`;

/** What a rate was measured under. */
function conditions(): string {
  const model = cpus()[0]?.model ?? 'unknown';
  return `Node ${process.version}, ${availableParallelism()} cores (${model}), load ${loadavg()[0]?.toFixed(1)}; nothing is flushed`;
}

await byCommand({
  steps: '50000',
  command: 'npm run simulate --',
  simulate: async (seed, steps) => {
    const outcome = await simulate(seed, steps);
    took.seconds += outcome.seconds;
    took.cpuSeconds += outcome.cpuSeconds;
    return outcome;
  },
  lines: ({ seed, steps, seconds, hash, simulatedMs }) => [
    `seed ${seed}, ${steps} steps, ${rate(steps, took)}, trace ${hash}`,
    `${Math.round(simulatedMs / 1_000)} s simulated in ${seconds.toFixed(1)} s`,
    conditions(),
  ],
  linesOfAll: (seeds, steps) => [`${seeds}, ${steps} steps, ${rate(steps, took)}`, conditions()],
});
