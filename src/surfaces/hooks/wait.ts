// `postbell wait`: the one-shot listener of a session. The order is fixed: print, flush, commit the cursor, exit 2.
// Exit 2 only after text: a notice, or after long idling the request to be armed again; 0 when it is a duplicate or its
// host has gone.

import type { Desk } from '../../mailbox/desk.ts';
import { commitBatch, nextBatch } from '../../mailbox/listen.ts';
import { notifierLockName } from '../../mailbox/notifier.ts';
import type { Locks } from '../../ports/lock.ts';
import { limits } from '../../protocol/limits.ts';
import { renewalText } from '../../protocol/notices.ts';
import { whileBusy } from './while-busy.ts';

export interface WaitOptions {
  desk: Pick<Desk, 'store' | 'clock' | 'wake'>;
  locks: Locks;
  session: string;
  /** Names the host process, if it is known; one listener a host. */
  host: string | undefined;
  hostAlive(): boolean;
  /** Without a person at it: such a host stays until its hooks end, so the listener leaves with the MCP server. */
  unattended: boolean;
  renewAfterMs: number;
  /** Writes and flushes; throws where the reader is gone. */
  print(text: string): void;
  ended: AbortSignal;
}

/** Another host's listener of this session may be about to notice that its host has died. */
const sessionLockWaitMs = 800;
const sessionLockRetryMs = 50;
/** A server that was just replaced is not taken for gone. */
const serverGoneMs = 1_000;

/** @returns the exit status */
export async function waitForMail(options: WaitOptions): Promise<0 | 2> {
  const { desk, locks } = options;
  const patience = { clock: desk.clock, ended: options.ended };
  const names = await whileBusy(patience, () => ({
    root: desk.store.read((tx) => tx.identity.chain(options.session))[0] as string,
    server: notifierLockName(desk, options.session),
  }));
  if (names === undefined) return 0;
  const hostLock = options.host === undefined ? undefined : locks.tryTake(`listener-host-${options.host}`);
  if (options.host !== undefined && hostLock === undefined) return 0;
  const events = eventsOf(options);
  let sessionLock: { release(): void } | undefined;
  try {
    sessionLock = await takeSessionLock(options, `listener-${names.root}`, events);
    return sessionLock === undefined ? 0 : await listen(options, events, names.server);
  } finally {
    events.close();
    sessionLock?.release();
    hostLock?.release();
  }
}

/** The touch makes an older listener look whether its host still lives. */
async function takeSessionLock({ desk, locks, ended }: WaitOptions, name: string, events: Events) {
  const deadline = desk.clock.elapsedMs() + sessionLockWaitMs;
  for (let first = true; !ended.aborted; first = false) {
    const lock = locks.tryTake(name);
    if (lock !== undefined || desk.clock.elapsedMs() >= deadline) return lock;
    if (first) desk.wake.touch();
    await events.next(sessionLockRetryMs);
  }
  return undefined;
}

async function listen(options: WaitOptions, events: Events, serverLock: string): Promise<0 | 2> {
  const { desk } = options;
  const patience = { clock: desk.clock, ended: options.ended };
  const renewAtMs = desk.clock.elapsedMs() + options.renewAfterMs;
  const server = serverWatch(options, serverLock);
  while (!options.ended.aborted && options.hostAlive() && !server.gone()) {
    const batch = await whileBusy(patience, () => nextBatch(desk, options.session));
    if (batch === undefined) {
      const leftMs = renewAtMs - desk.clock.elapsedMs();
      if (leftMs <= 0) {
        options.print(`${renewalText}\n`);
        return 2;
      }
      await events.next(Math.min(leftMs, server.lookAgainMs()));
    } else {
      if (batch.text !== undefined) options.print(`${batch.text}\n`);
      const committed = await whileBusy(patience, () => commitBatch(desk, batch).then(() => true));
      if (committed && batch.text !== undefined) return 2;
    }
  }
  return 0;
}

/** Watches the session's MCP server by the notifier lock that it holds for life. */
function serverWatch({ desk, locks, unattended }: WaitOptions, name: string) {
  let seen = false;
  let freeSinceMs: number | undefined;
  const gone = (): boolean => {
    if (!unattended) return false;
    const free = locks.tryTake(name);
    free?.release();
    const nowMs = desk.clock.elapsedMs();
    seen ||= free === undefined;
    freeSinceMs = free === undefined ? undefined : (freeSinceMs ?? nowMs);
    return seen && freeSinceMs !== undefined && nowMs - freeSinceMs >= serverGoneMs;
  };
  return { gone, lookAgainMs: () => (seen && freeSinceMs !== undefined ? serverGoneMs : limits.wakeTickMs) };
}

interface Events {
  /** Resolves after a touch since the last call, after `ms`, or at the end. */
  next(ms: number): Promise<void>;
  close(): void;
}

function eventsOf({ desk, ended }: WaitOptions): Events {
  let touched = false;
  let resume: (() => void) | undefined;
  const unwatch = desk.wake.watch(() => {
    touched = true;
    resume?.();
  });
  const onEnd = (): void => resume?.();
  ended.addEventListener('abort', onEnd);
  return {
    next: async (ms) => {
      if (!touched && !ended.aborted)
        await new Promise<void>((resolve) => {
          const cancel = desk.clock.after(ms, resolve);
          resume = () => {
            cancel();
            resolve();
          };
        });
      resume = undefined;
      touched = false;
    },
    close: () => {
      unwatch();
      ended.removeEventListener('abort', onEnd);
    },
  };
}
