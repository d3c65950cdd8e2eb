// The store as the use cases see it: the one system of record. Rows keep their wire names.

import type { Feed } from './feed.ts';
import type { Fallbacks, Messages, Receipts, Reminders, Tasks, Waiting } from './mail.ts';
import type { Pairing } from './pairing.ts';
import type { Devices, FactsOut, Gate, LinkRecords, Outbox, Places } from './peers.ts';
import type { Attempts, Identity, Routers, Sessions } from './presence.ts';
import type { Releases } from './releases.ts';
import type { Failures, Listener, Notices } from './ringing.ts';

export interface Store {
  /** Runs `work` in one snapshot. Throws Fault `store_unreadable`, or `store_busy` where even reading must wait. */
  read<T>(work: (tx: Tx) => T): T;
  /**
   * Runs `work` in one immediate transaction, durable (synchronous=FULL) when the promise resolves. A throw rolls
   * back. Waits for the write lock without blocking the process; Fault `store_busy` after 5 s, `store_full`,
   * `store_unwritable`. `work` may run more than once: it must not have effects outside the transaction.
   */
  write<T>(work: (tx: Tx) => T): Promise<T>;
  /** Whether another connection has committed since the last call (the first call answers true). */
  changed(): boolean;
  close(): void;
}

export interface Tx {
  readonly messages: Messages;
  readonly waiting: Waiting;
  readonly reminders: Reminders;
  readonly receipts: Receipts;
  readonly sessions: Sessions;
  readonly attempts: Attempts;
  readonly notices: Notices;
  readonly listener: Listener;
  readonly identity: Identity;
  readonly feed: Feed;
  readonly tasks: Tasks;
  readonly fallbacks: Fallbacks;
  readonly failures: Failures;
  readonly routers: Routers;
  readonly releases: Releases;
  readonly places: Places;
  readonly devices: Devices;
  readonly gate: Gate;
  readonly outbox: Outbox;
  readonly factsOut: FactsOut;
  readonly linkRecords: LinkRecords;
  readonly pairing: Pairing;
}
