// `postbell relay`: stores sealed items for their owners, in the foreground until a signal.

import { verifyRequest } from '../crypto/http-signature.ts';
import { systemClock } from '../platform/clock.ts';
import { processEnvironment } from '../platform/environment.ts';
import { ensureDirectory } from '../platform/files.ts';
import { stderrLog } from '../platform/log.ts';
import { placesOf } from '../platform/paths.ts';
import { systemRandom } from '../platform/random.ts';
import type { QueueStore } from '../ports/relay-queue.ts';
import { Fault } from '../protocol/errors.ts';
import { relayProtocols } from '../protocol/relay-http.ts';
import { version } from '../protocol/version.ts';
import { type RelayServer, startRelay } from '../relay/server.ts';
import { openRelayStore } from '../store/relay/open.ts';
import { endOnSignal } from './ending.ts';
import { failWithoutOutput, orFail } from './failure.ts';
import { type RelayOptionsGiven, relayOptions } from './relay-options.ts';

export function main(words: readonly string[]): Promise<void> {
  failWithoutOutput(words);
  return orFail(words, async (rest) => {
    const { directory } = placesOf(processEnvironment);
    await run(relayOptions(rest, processEnvironment, directory), directory);
  });
}

async function run(options: RelayOptionsGiven, directory: string): Promise<void> {
  const { storePath, host, publicUrl, exposed } = options;
  ensureDirectory(directory);
  const log = stderrLog('info');
  const store = await openRelayStore({ path: storePath, clock: systemClock, random: systemRandom });
  const relay = await listen(options, store, log).catch(async (error: unknown) => {
    await store.close();
    throw error;
  });
  endOnSignal(async () => {
    await relay.close();
    await store.close();
  });
  const shown = host.includes(':') ? `[${host}]` : host;
  const origin = publicUrl ?? `http://${shown}:${relay.port}`;
  if (exposed)
    log.warn(
      'plain HTTP, open to other machines: items are sealed and requests signed, but who asks for which queue can be seen',
    );
  const told = { origin, store: `sqlite:${storePath}`, protocols: relayProtocols, version };
  process.stdout.write(`${JSON.stringify(told)}\n`);
}

function listen(
  { host, port, publicUrl }: RelayOptionsGiven,
  store: QueueStore,
  log: ReturnType<typeof stderrLog>,
): Promise<RelayServer> {
  const authority = publicUrl === undefined ? undefined : new URL(publicUrl).host;
  const starting = startRelay({
    store,
    clock: systemClock,
    log,
    verify: verifyRequest,
    host,
    port,
    authority,
  });
  return starting.catch((cause: NodeJS.ErrnoException) => {
    throw new Fault('usage', `--listen: ${host}:${port} cannot be listened on (${cause.code})`, { cause });
  });
}
