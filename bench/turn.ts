// All hooks of one turn of a session to which nobody wrote, in the way of its person: the prompt hook and the Stop gate; and
// whether they grow with mail that was consumed. Somebody else's server holds the store open, as in any account that uses it.

import path from 'node:path';
import { fill } from './inbox.ts';
import { alternate, type Metric, median, type Plan } from './metric.ts';
import { bareNode, endAll, type Home, makeHome, startServer, wall } from './program.ts';

const consumed = 10_000;

export async function hooksOfTurn({ directory, program, quick }: Plan): Promise<Metric[]> {
  const fresh = await openHome(program, makeHome(directory, 'turn-fresh'), 0);
  const used = await openHome(program, makeHome(directory, 'turn-used'), consumed);
  const input = JSON.stringify({ session_id: 'session', hook_event_name: 'Stop' });
  const env = { POSTBELL_RECIPIENT: 'r', CLAUDE_PROJECT_DIR: fresh.project };
  const hook = (home: Home, event: string) => () =>
    wall(home, [program, 'hook', event, '--host', 'claude'], { input, env });
  const values = await alternate(quick ? 9 : 31, 2, {
    bare: () => bareNode(fresh),
    prompt: hook(fresh, 'prompt'),
    gate: hook(fresh, 'stop-gate'),
    promptUsed: hook(used, 'prompt'),
    gateUsed: hook(used, 'stop-gate'),
  });
  await endAll();
  const bare = { what: 'node -e 0', value: median(values.bare) };
  const row = (id: string, what: string, measured: number, target: number): Metric => ({
    id,
    what,
    unit: 'ms',
    measured,
    yardstick: bare,
    target,
  });
  const [prompt, gate] = [median(values.prompt), median(values.gate)];
  const turnUsed = median(values.promptUsed) + median(values.gateUsed);
  return [
    { ...row('4d', 'hook prompt, nothing waits', prompt, 1.6), stretch: 1.35 },
    { ...row('4e', 'hook stop-gate, nothing waits', gate, 1.6), stretch: 1.35 },
    row('turn', 'both, one after the other', prompt + gate, 3),
    {
      id: 'turn+',
      what: `both, ${consumed} consumed`,
      unit: 'ms',
      measured: turnUsed,
      yardstick: { what: 'both, none consumed', value: prompt + gate },
      target: 1.1,
    },
  ];
}

/** With a store of `count` consumed messages for `r`, held open by a server. */
async function openHome(program: string, home: Home, count: number): Promise<Home> {
  await wall(home, [program, 'send', 'other', '--project', 'p'], { input: 'first' });
  if (count > 0) fill(path.join(home.directory, 'postbell.db'), count);
  await startServer([program, 'mcp'], home, 'another');
  return home;
}
