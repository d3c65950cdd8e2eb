// This data directory among those of the account: its device, and the door that strangers knock at. Both are made at first need.

import type { Place } from '../ports/peers.ts';
import type { Random } from '../ports/random.ts';
import type { Tx } from '../ports/store.ts';
import { hex } from '../protocol/id.ts';

const newId = (random: Random): string => hex(random.bytes(16));

/** The place, made where there is none. */
export function ensurePlace(tx: Tx, random: Random): Place {
  const known = tx.places.get();
  if (known !== undefined) return known;
  const place = { device: newId(random), door: newId(random) };
  tx.places.set(place);
  return place;
}

/** Another id in the place of one; the queue of the old one is to be purged. */
export function replaceQueue(
  tx: Tx,
  { random, key, of, at }: { random: Random; key: string; of: keyof Place; at: string },
): Place {
  const former = ensurePlace(tx, random);
  const place = { ...former, [of]: newId(random) };
  tx.places.retire(`${key}.${former[of]}`, at);
  tx.places.set(place);
  return place;
}
