// `postbell wait`: the one-shot listener of a session. The order is fixed: print, flush, commit the cursor, exit 2.
// Exit 2 only after text: a notice, or after long idling the request to be armed again; 0 when it is a duplicate or its
// host has gone.

import type { Desk } from '../../mailbox/desk.ts';
import { afterGates } from '../../mailbox/gate-turn.ts';
import { type Batch, commitBatch, heldBackMs, nextBatch } from '../../mailbox/listen.ts';
import { listenerLockName } from '../../mailbox/notifier.ts';
import type { Lock } from '../../ports/lock.ts';
import { renewalText } from '../../protocol/notices.ts';
import { type StandIn, type StandInOptions, standIn } from './stand-in.ts';
import { whileBusy } from './while-busy.ts';

export interface WaitOptions extends StandInOptions {
  desk: Pick<Desk, 'store' | 'clock' | 'wake' | 'random'>;
  /** Names the host process, if it is known; one listener a host. */
  host: string | undefined;
  hostAlive(): boolean;
  renewAfterMs: number;
  /** When this process began, if a Stop began it: then a gate runs beside it. */
  stoppedAtMs: number | undefined;
  /** Writes and flushes; throws where the reader is gone. */
  print(text: string): void;
  ended: AbortSignal;
}

/** Another host's listener of this session may be about to notice that its host has died. */
const sessionLockWaitMs = 800;
const sessionLockRetryMs = 50;
/** How often a listener with rows asks whether a gate still runs. */
const gateLookMs = 50;

/** @returns the exit status */
export async function waitForMail(options: WaitOptions): Promise<0 | 2> {
  const renewAtMs = options.desk.clock.elapsedMs() + options.renewAfterMs;
  const events = eventsOf(options);
  const server = standIn(options);
  const gatesAreDone = afterGates(options);
  try {
    for (;;) {
      const locks = await takeLocks(options, events);
      if (locks === undefined) return 0;
      try {
        const status = await listen(options, { events, server, gatesAreDone, locks, renewAtMs });
        if (status !== undefined) return status;
      } finally {
        for (const lock of locks) lock.release();
      }
    }
  } finally {
    events.close();
  }
}

/** The host's lock, then the session's. Undefined where another listener is there. */
async function takeLocks(options: WaitOptions, events: Events): Promise<Lock[] | undefined> {
  const { desk, locks, host, session, ended } = options;
  const patience = { clock: desk.clock, ended };
  const root = await whileBusy(patience, () => desk.store.read((tx) => tx.identity.chain(session))[0]);
  if (root === undefined) return undefined;
  const hostLock = host === undefined ? undefined : locks.tryTake(`listener-host-${host}`);
  if (host !== undefined && hostLock === undefined) return undefined;
  const sessionLock = await takeSessionLock(options, listenerLockName(root), events);
  if (sessionLock !== undefined) return hostLock === undefined ? [sessionLock] : [hostLock, sessionLock];
  hostLock?.release();
  return undefined;
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

interface Listening {
  events: Events;
  server: StandIn;
  gatesAreDone(): boolean;
  locks: readonly Lock[];
  renewAtMs: number;
}

/** @returns undefined where somebody removed the lock files: another listener may have come in meanwhile */
async function listen(options: WaitOptions, on: Listening): Promise<0 | 2 | undefined> {
  const { desk, ended } = options;
  const patience = { clock: desk.clock, ended };
  while (!ended.aborted && options.hostAlive()) {
    if (!on.locks.every((lock) => lock.held())) return undefined;
    if (await whileBusy(patience, () => on.server.look())) return 0;
    const batch = await whileBusy(patience, () => due(options, on));
    if (typeof batch === 'number') await on.events.next(Math.min(batch, on.server.againMs()));
    else if (batch === undefined) {
      const leftMs = on.renewAtMs - desk.clock.elapsedMs();
      if (leftMs <= 0) {
        options.print(`${renewalText}\n`);
        return 2;
      }
      await on.events.next(Math.min(leftMs, on.server.againMs()));
    } else {
      if (batch.text !== undefined) options.print(`${batch.text}\n`);
      const committed = await whileBusy(patience, () => commitBatch(desk, batch).then(() => true));
      if (committed && batch.text !== undefined) return 2;
    }
  }
  // Its server may sit on a pipe that stays open: the touch lets that look, too.
  desk.wake.touch();
  return 0;
}

/** The batch to print now, or how long to leave it: until a gate of the session is done, or its minute is over. */
function due({ desk, session }: WaitOptions, { gatesAreDone }: Listening): Batch | number | undefined {
  if (nextBatch(desk, session) === undefined) return undefined;
  if (!gatesAreDone()) return gateLookMs;
  // Read anew: what a gate has just told is passed over.
  const batch = nextBatch(desk, session);
  const heldMs = batch?.text === undefined ? 0 : heldBackMs(desk, batch);
  return heldMs > 0 ? heldMs : batch;
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
