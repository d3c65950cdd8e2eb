// The way to relays for a process that only asks them.

import { relayClient } from '../carriers/postbell/client.ts';
import type { Clock } from '../ports/clock.ts';
import type { Random } from '../ports/random.ts';
import type { Relay, Signer } from '../ports/relay.ts';

/** Clients of relays: those that the owner listed may lie anywhere, others only in public. */
export const relayClients =
  (ground: { clock: Clock; random: Random }, listed: readonly string[]) =>
  (origin: string, signer: Signer): Relay =>
    relayClient({ ...ground, origin, signer, mayReach: listed.includes(origin) ? 'anywhere' : 'public' });
