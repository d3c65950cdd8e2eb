import { it } from 'vitest';
import { simulateLink } from './run.ts';

it('x', async () => {
  const by = new Map<string, string[]>();
  for (let s = Number(process.env.A ?? 1); s <= Number(process.env.B ?? 3); s++) {
    const o = await simulateLink(s, Number(process.env.S ?? 4000));
    const f = o.failure;
    const k = f
      ? f.checker +
        ': ' +
        f.text
          .replace(/msg_\w+/g, 'M')
          .replace(/alice|bob|carol|dave/g, 'X')
          .replace(/\d+/g, 'N')
          .slice(0, 150)
      : 'ok';
    by.set(k, [...(by.get(k) ?? []), `${s}@${f?.step}`]);
    if (process.env.V)
      console.log(
        s,
        o.steps,
        o.seconds.toFixed(1),
        Math.round(o.simulatedMs / 60000),
        f,
        f ? o.trace.join('\n') : o.tally.lines().join('\n'),
      );
  }
  for (const [k, v] of by) console.log(v.length, k, v.slice(0, 6).join(' '));
}, 6000000);
