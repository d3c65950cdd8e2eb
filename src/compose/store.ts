// What every process builds: the places, the store, clock, randomness, wake and locks.

import { systemClock } from '../platform/clock.ts';
import { type Environment, processEnvironment } from '../platform/environment.ts';
import { ensureDirectory } from '../platform/files.ts';
import { type Places, placesOf } from '../platform/paths.ts';
import { systemRandom } from '../platform/random.ts';
import { fileWake } from '../platform/wake.ts';
import type { Clock } from '../ports/clock.ts';
import type { Locks } from '../ports/lock.ts';
import type { Random } from '../ports/random.ts';
import type { Store } from '../ports/store.ts';
import type { Wake } from '../ports/wake.ts';
import { locksIn } from '../store/lock.ts';
import { openStore } from '../store/open.ts';

export interface Ground {
  environment: Environment;
  places: Places;
  store: Store;
  clock: Clock;
  random: Random;
  wake: Wake;
  locks: Locks;
}

/** Makes the owner-private directories and opens the store of this account. */
export async function openGround(
  options: { lockWaitMs?: number; groupCommits?: boolean } = {},
  environment: Environment = processEnvironment,
): Promise<Ground> {
  const places = placesOf(environment);
  ensureDirectory(places.directory);
  ensureDirectory(places.runtime);
  const clock = systemClock;
  const random = systemRandom;
  const store = await openStore({ path: places.database, clock, random, ...options });
  return {
    environment,
    places,
    store,
    clock,
    random,
    wake: fileWake(places.wakeFile),
    locks: locksIn(places.runtime),
  };
}
