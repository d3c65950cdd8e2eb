// `postbell router`: the router in the foreground until a signal; `router status` and `router stop` ask a running one.

import { systemClock } from '../platform/clock.ts';
import { processEnvironment } from '../platform/environment.ts';
import { stderrLog } from '../platform/log.ts';
import { checkSocketPath, placesOf } from '../platform/paths.ts';
import { Fault } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import { connectRouter } from '../router/client.ts';
import { probe } from '../router/lifecycle.ts';
import { type Daemon, makePolicyFile, startRouter } from './daemon.ts';
import { endOnSignal } from './ending.ts';
import { failWithoutOutput, orFail } from './failure.ts';
import { routerAddress } from './local.ts';
import { openGround } from './store.ts';

export function main(words: readonly string[]): Promise<void> {
  failWithoutOutput(words);
  return orFail(words, async ([verb, ...surplus]) => {
    if (surplus.length > 0 || (verb !== undefined && verb !== 'status' && verb !== 'stop'))
      throw new Fault('usage', 'router takes status, stop or nothing');
    await (verb === undefined ? runRouter() : ask(verb));
  });
}

async function runRouter(): Promise<void> {
  checkSocketPath(placesOf(processEnvironment).routerSocket);
  const ground = await openGround({ groupCommits: true });
  let daemon: Daemon | undefined;
  const end = endOnSignal(async () => {
    await daemon?.close();
    ground.store.close();
  });
  try {
    const log = stderrLog('info');
    makePolicyFile(ground.environment, log);
    daemon = await startRouter(ground, log, { stop: end, lost: end });
  } catch (error) {
    ground.store.close();
    throw error;
  }
}

/** Nothing is opened, and so nothing made where Postbell never ran. */
async function ask(verb: 'status' | 'stop'): Promise<void> {
  const ports = { clock: systemClock };
  const { socketPath, token } = routerAddress(placesOf(processEnvironment), process.platform);
  checkSocketPath(socketPath);
  const state = verb === 'stop' ? await probe(socketPath, systemClock) : 'answers';
  if (state === 'unclear')
    throw new Fault('router_timeout', `whether a router runs at ${socketPath} cannot be told`);
  if (state === 'refused') {
    process.stdout.write('{"stopping":false}\n');
    return;
  }
  const auth_token = token();
  const client = await connectRouter(socketPath, ports);
  const asked = client.request({ type: verb, auth_token }, limits.routerCallWaitMs);
  const { ok: _, ...answer } = await asked.finally(() => client.close());
  const shown = verb === 'status' ? { socket: socketPath, ...answer } : answer;
  process.stdout.write(`${JSON.stringify(shown)}\n`);
}
