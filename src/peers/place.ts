import type { Place } from '../ports/peers.ts';
import type { Random } from '../ports/random.ts';
import type { Tx } from '../ports/store.ts';
import { hex } from '../protocol/id.ts';

/** This data directory's queues: made once. */
export function ownPlace(tx: Tx, random: Random): Place {
  const known = tx.places.get();
  if (known !== undefined) return known;
  const place = { device: hex(random.bytes(16)), door: hex(random.bytes(16)) };
  tx.places.set(place);
  return place;
}

/** Another id in the place of one; the queue of the old one is to be purged. */
export function replaceQueue(
  tx: Tx,
  { random, key, of, at }: { random: Random; key: string; of: keyof Place; at: string },
): Place {
  const former = ownPlace(tx, random);
  const place = { ...former, [of]: hex(random.bytes(16)) };
  tx.places.retire(`${key}.${former[of]}`, at);
  tx.places.set(place);
  return place;
}
