// `npm run simulate -- --link`: several machines and what lies between them.

import { byCommand } from '../by-command.ts';
import { simulateLink } from './run.ts';

await byCommand({
  steps: '4000',
  command: 'npm run simulate -- --link',
  simulate: (seed, steps) => simulateLink(seed, steps),
  lines: ({ seed, steps, simulatedMs, seconds, hash }) => [
    `seed ${seed}, ${steps} steps, ${Math.round(simulatedMs / 60_000)} min simulated in ${seconds.toFixed(1)} s, trace ${hash}`,
  ],
  linesOfAll: (seeds, steps) => [`${seeds}, ${steps} steps`],
  state: ({ state }) => state,
});
