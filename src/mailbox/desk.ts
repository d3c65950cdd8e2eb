// What the use cases of the mail are handed: the ports, and who is calling.

import type { Account } from '../ports/account.ts';
import type { Clock } from '../ports/clock.ts';
import type { Random } from '../ports/random.ts';
import type { Relay, Signer } from '../ports/relay.ts';
import type { Router } from '../ports/router.ts';
import type { Store } from '../ports/store.ts';
import type { Wake } from '../ports/wake.ts';
import { type IdKind, makeId } from '../protocol/id.ts';
import type { Provenance } from '../protocol/message.ts';

export interface Desk {
  store: Store;
  clock: Clock;
  random: Random;
  wake: Wake;
  router: Router;
  /** The account's identity and whom it trusts; absent where nothing leaves this machine, as in a demo. */
  account?: Account;
  /** The way to relays; absent where nothing leaves this machine, as in a demo. */
  link?: { relays: readonly string[]; client(origin: string, signer: Signer): Promise<Relay> };
  /** When a person last wrote to the session, by its ids; undefined where nothing notes that. */
  lastPromptMs?(sessionIds: readonly string[]): number | undefined;
  /** Payload bytes that the owner allows in all; absent: no limit. */
  quota?: number | 'malformed';
}

/** Whose mail a call is about. */
export interface Who {
  /** The calling session, if known. */
  session?: string;
  /** The principal that session has if it never registered. */
  principal?: string;
}

/** Where a call comes from: known to the transport, never an argument of the call. */
export interface Caller extends Who {
  transport: Provenance['transport'];
  source_host: string;
  /** A sub-agent of the session, where the host says that one calls. */
  sub_agent?: string;
}

/** The clock's time as ISO 8601 UTC with milliseconds. */
export function timestamp(desk: Pick<Desk, 'clock'>): string {
  return new Date(desk.clock.nowMs()).toISOString();
}

export function newId(desk: Pick<Desk, 'clock' | 'random'>, kind: IdKind): string {
  return makeId(kind, desk.clock.nowMs(), desk.random.bytes(10));
}
