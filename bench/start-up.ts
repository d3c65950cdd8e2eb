// Targets 4, 5 and 6: what the short-lived commands and the first answer of a session take, beside a bare node.

import { armed } from './listener.ts';
import { alternate, type Metric, median, type Plan } from './metric.ts';
import {
  bareNode,
  endAll,
  makeHome,
  sessionEnv,
  startListener,
  startRouter,
  startServer,
  wall,
} from './program.ts';

const yardstick = 'node -e 0';

/** Target 4. The hooks of a session to which nobody wrote. */
export async function hooks({ directory, program, quick }: Plan): Promise<Metric[]> {
  const home = makeHome(directory, 'hooks');
  const env = sessionEnv(home, 'session');
  const input = JSON.stringify({ session_id: 'session', source: 'startup' });
  const listener = startListener(program, home, 'session');
  await armed(listener);
  const values = await alternate(quick ? 9 : 31, 2, {
    bare: () => bareNode(home),
    start: () => wall(home, [program, 'hook', 'session-start', '--host', 'claude'], { input, env }),
    duplicate: () => wall(home, [program, 'wait'], { input, env }),
    disabled: () => wall(home, [program, 'wait'], { input, env: { ...env, POSTBELL_LISTENER: 'off' } }),
  });
  await endAll();
  const row = (id: string, what: string, of: number[]): Metric => ({
    id,
    what,
    unit: 'ms',
    measured: median(of),
    yardstick: { what: yardstick, value: median(values.bare) },
    target: 1.6,
    stretch: 1.35,
  });
  return [
    row('4a', 'hook session-start, empty inbox, git project', values.start),
    row('4b', 'wait, one is armed already', values.duplicate),
    row('4c', 'wait, switched off', values.disabled),
  ];
}

/** Target 5. */
export async function cliSend({ directory, program, quick }: Plan): Promise<Metric[]> {
  const alone = makeHome(directory, 'cli-alone');
  const routed = makeHome(directory, 'cli-routed');
  await startRouter(program, routed);
  let sent = 0;
  const send = (home: typeof alone) => {
    const flags = { project: 'shop', recipient: 'reader', sender: 'bench', 'idempotency-key': `k${sent++}` };
    const words = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value]);
    return wall(home, [program, 'message', 'send', ...words, '--payload-stdin'], { input: 'hello' });
  };
  const values = await alternate(quick ? 9 : 31, 2, {
    bare: () => bareNode(alone),
    alone: () => send(alone),
    routed: () => send(routed),
  });
  await endAll();
  const row = (id: string, what: string, of: number[]): Metric => ({
    id,
    what,
    unit: 'ms',
    measured: median(of),
    yardstick: { what: yardstick, value: median(values.bare) },
    target: 2,
    stretch: 1.6,
  });
  return [
    row('5a', 'message send, no router', values.alone),
    row('5b', 'message send, router running', values.routed),
  ];
}

/** Target 6. */
export async function firstAnswer({ directory, program, quick }: Plan): Promise<Metric[]> {
  const home = makeHome(directory, 'first-answer');
  const values = await alternate(quick ? 9 : 31, 2, {
    bare: () => bareNode(home),
    mcp: async () => {
      const server = await startServer([program, 'mcp'], home, 'session');
      await server.end();
      return server.firstAnswerMs;
    },
  });
  return [
    {
      id: '6',
      what: 'first answer of mcp',
      unit: 'ms',
      measured: median(values.mcp),
      yardstick: { what: yardstick, value: median(values.bare) },
      target: 4,
      stretch: 2.5,
    },
  ];
}
