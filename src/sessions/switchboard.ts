// What the router's use cases are handed: the ports, and the way to a live connection.

import type { Clock } from '../ports/clock.ts';
import type { ConnectionRow } from '../ports/presence.ts';
import type { Random } from '../ports/random.ts';
import type { Store } from '../ports/store.ts';
import type { Wake } from '../ports/wake.ts';
import type { Json } from '../protocol/json.ts';
import type { Leases } from './leases.ts';

/** One hand-off as it goes to a session's process. */
export interface HandOff {
  attempt_id: string;
  delivery_id: string;
  project: string;
  principal_id: string;
  session_id: string;
  content: 'notice' | 'full';
  envelope: Json;
}

/** What a host answered: accepted, or why not. */
export type HostOutcome =
  | { outcome: 'accepted'; content: 'notice' | 'full'; receipt: Json }
  | { outcome: 'rejected'; failure_code: string }
  | { outcome: 'timeout' }
  | { outcome: 'disconnected' };

export interface Switchboard {
  store: Store;
  clock: Clock;
  random: Random;
  wake: Wake;
  leases: Leases;
  /** Names this run of the router. */
  instance: string;
  /** How long a host may take to answer a hand-off. */
  hostOutcomeWaitMs: number;
  /** Sends the frame to the process of this connection and waits for its outcome. */
  hand(connection: ConnectionRow, handOff: HandOff): Promise<HostOutcome>;
}
