import { it } from 'vitest';
import { simulateLink } from './run.ts';
it('x', async () => {
  for (let s = Number(process.env.A ?? 1); s <= Number(process.env.B ?? 3); s++) {
    const o = await simulateLink(s, 4000);
    console.log(s, o.steps, o.seconds.toFixed(1), Math.round(o.simulatedMs / 60000), o.failure, o.failure ? o.trace.slice(-15).join('\n') : o.tally.lines().join('\n'));
  }
}, 600000);
