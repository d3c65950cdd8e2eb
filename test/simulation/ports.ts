// The ports of one simulated process. A write may come late, be cut off by the death of the process, or be the last
// thing it did: then nobody goes on behind the await.

import type { Clock } from '../../src/ports/clock.ts';
import type { Locks } from '../../src/ports/lock.ts';
import type { Random } from '../../src/ports/random.ts';
import type { Store } from '../../src/ports/store.ts';
import type { Wake } from '../../src/ports/wake.ts';
import { storeOver } from '../../src/store/open.ts';
import { mortalWrite } from './mortal-write.ts';
import type { Process } from './process.ts';
import { deadliness, type World } from './world.ts';

export interface Ports {
  store: Store;
  clock: Clock;
  random: Random;
  wake: Wake;
  locks: Locks;
}

/** Puts something between the use cases and the store: a canary's way in. */
export type Tamper = (store: Store, process: Process, world: World) => Store;

const aProcess = { life: 'mortal', groupCommits: false } as const;

export function portsOf(
  world: World,
  process: Process,
  tamper?: Tamper,
  { life, groupCommits }: { life: 'mortal' | 'immortal'; groupCommits: boolean } = aProcess,
): Ports {
  const clock: Clock = {
    nowMs: () => world.nowMs(),
    elapsedMs: () => world.timeline.elapsedMs,
    after: (ms, then) => {
      const event = world.later(process, 'timer', ms, then);
      return () => {
        event.canceled = true;
      };
    },
  };
  const real = storeOver(world.disk, { path: 'simulated.db', clock, random: world.dice, groupCommits });
  const store = tamper === undefined ? real : tamper(real, process, world);
  return {
    store: life === 'mortal' ? mortalStore(world, process, store) : store,
    clock,
    random: world.dice,
    wake: {
      touch: () => {
        if (process.alive) world.touch();
      },
      watch: (onTouch) => world.watch(process, onTouch),
    },
    locks: {
      tryTake: (name) => world.tryTake(process, name),
      isHeld: (name) => world.isHeld(name),
      stamp: (name, atMs) => void world.stamps.set(name, atMs),
      stampedAtMs: (name) => world.stamps.get(name),
    },
  };
}

function mortalStore(world: World, process: Process, store: Store): Store {
  let seen = -1;
  return {
    read: (work) => store.read(work),
    write: mortalWrite(world, process, store, {
      deadliness: deadliness(process),
      counted: 'killed between commit and touch',
    }),
    changed: () => {
      const foreign = world.commits - (world.commitsBy.get(process) ?? 0);
      const changed = foreign !== seen;
      seen = foreign;
      return changed;
    },
    close: () => {},
  };
}
