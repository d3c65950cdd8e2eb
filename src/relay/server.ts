// The relay's server: it takes connections, and ends in order: nothing new, waiting polls answered, open commits finished.

import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import type { verifyRequest } from '../crypto/http-signature.ts';
import type { Clock } from '../ports/clock.ts';
import type { Log } from '../ports/log.ts';
import type { QueueStore } from '../ports/relay-queue.ts';
import { describeError } from '../protocol/errors.ts';
import { relayLimits } from '../protocol/relay-http.ts';
import { noncesBy } from './nonces.ts';
import { Polls } from './polls.ts';
import { gateOf } from './proof.ts';
import { relayApp } from './routes.ts';
import { watchStillness } from './stillness.ts';

/** Longer than a client keeps an idle connection between two polls. */
const keepAliveMs = 75_000;
const sweepMs = 60_000;
/** Of the 10 s in which a relay ends. */
const endMs = 8_000;

export interface RelayOptions {
  store: QueueStore;
  clock: Clock;
  log: Log;
  verify: typeof verifyRequest;
  host: string;
  port: number;
  /** Host and port that requests are signed for; undefined: those of the first one that proves its key. */
  authority: string | undefined;
}

export interface RelayServer {
  port: number;
  /** Resolves when nothing is under way any more; the store is the caller's to close. */
  close(): Promise<void>;
}

/** Rejects as `server.listen` does. */
export async function startRelay(options: RelayOptions): Promise<RelayServer> {
  const { store, clock, log, verify, host, port } = options;
  const nonces = noncesBy(clock);
  const polls = new Polls(store, clock);
  const health = healthLog(log);
  let ending = false;
  const app = relayApp({
    store,
    clock,
    gate: gateOf({
      verify,
      clock,
      nonces,
      authority: { known: options.authority },
      learned: (authority) =>
        log.info('requests are taken that are signed for this authority alone, until the end', { authority }),
    }),
    polls,
    failed: health.failed,
    ending: () => ending,
  });
  const server = createAdaptorServer({
    fetch: app.fetch,
    // Node's own Response costs more than all else that is done for a request: 12 thousand a second become 16.
    overrideGlobalObjects: true,
    serverOptions: {
      keepAliveTimeout: keepAliveMs,
      headersTimeout: relayLimits.uploadMs,
      // The reader of a body has a limit of its own; this one ends what never becomes a request.
      requestTimeout: 2 * relayLimits.uploadMs,
    },
  }) as Server;
  await listen(server, host, port);
  const stopSweeping = every(clock, sweepMs, async () => {
    nonces.prune();
    await store.sweep().then(health.well, health.failed);
  });
  const unwatch = watchStillness(clock, () => store.resumed());
  return {
    port: (server.address() as AddressInfo).port,
    close: async () => {
      ending = true;
      stopSweeping();
      unwatch();
      const closed = new Promise((resolve) => server.close(resolve));
      polls.endAll();
      const cancel = clock.after(endMs, () => server.closeAllConnections());
      await closed;
      cancel();
    },
  };
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

function every(clock: Clock, ms: number, work: () => Promise<void>): () => void {
  let ended = false;
  let cancel = (): void => {};
  const next = (): void => {
    if (!ended) cancel = clock.after(ms, () => void work().finally(next));
  };
  next();
  return () => {
    ended = true;
    cancel();
  };
}

/** A store that fails is told of when that begins, and when it ends. */
function healthLog(log: Log) {
  let failing: string | undefined;
  return {
    failed: (error: unknown): void => {
      const { code, message } = describeError(error);
      if (failing !== code) log.warn('requests cannot be done', { code, message });
      failing = code;
    },
    well: (): void => {
      if (failing !== undefined) log.info('requests can be done again');
      failing = undefined;
    },
  };
}
