// Pairing and route records that the trust gate let through. What they change is committed before `done` is answered, and only then
// may the relay be told to drop them.

import { complete, type PairAcceptRecord } from './complete.ts';
import type { PairingGround } from './ground.ts';
import { type PairRequestRecord, takeRequest } from './take-request.ts';
import { type RouteRecord, takeRoute } from './take-route.ts';

export type ControlRecord = PairRequestRecord | PairAcceptRecord | RouteRecord;

/**
 * @param record verified, fresh, not replayed, well-formed, and authorised for the queue `via` which it came
 * @returns `later` where nothing could be decided now, as with a policy file that cannot be read: it must come again
 */
export async function takeControl(
  ground: PairingGround,
  record: ControlRecord,
  via: 'door' | 'device',
): Promise<'done' | 'later'> {
  switch (record.type) {
    case 'pair_request':
      return takeRequest(ground, record);
    case 'pair_accept':
      return complete(ground, record);
    case 'route':
      // The door is for pairing alone.
      return via === 'door' ? 'done' : takeRoute(ground, record);
  }
}
