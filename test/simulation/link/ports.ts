// The ports of one process of one machine. A write may come late, be cut off by the death of the process, or be the last thing
// that it did: then nobody goes on behind the await.

import type { Clock } from '../../../src/ports/clock.ts';
import type { Random } from '../../../src/ports/random.ts';
import type { Store } from '../../../src/ports/store.ts';
import type { Wake } from '../../../src/ports/wake.ts';
import { storeOver } from '../../../src/store/open.ts';
import { mortalWrite } from '../mortal-write.ts';
import type { Process } from '../process.ts';
import type { Machine } from './machine.ts';
import type { LinkWorld } from './world.ts';

export interface Ports {
  store: Store;
  clock: Clock;
  random: Random;
  wake: Wake;
}

/** Puts something between the use cases and the store: a canary's way in. */
export type Tamper = (store: Store, process: Process, machine: Machine) => Store;

export function portsOf(world: LinkWorld, machine: Machine, process: Process, tamper?: Tamper): Ports {
  const clock: Clock = {
    nowMs: () => machine.nowMs(),
    elapsedMs: () => world.elapsedMs,
    after: (ms, then) => {
      const event = world.later(process, 'timer', ms, then);
      return () => {
        event.canceled = true;
      };
    },
  };
  const groupCommits = process.kind === 'router';
  const real = storeOver(machine.disk, { path: 'simulated.db', clock, random: world.dice, groupCommits });
  const store = tamper === undefined ? real : tamper(real, process, machine);
  return {
    store: mortalStore(world, process, store),
    clock,
    random: { bytes: (count) => world.dice.bytes(count) },
    wake: {
      touch: () => {
        if (process.alive) machine.touch();
      },
      watch: (onTouch) => machine.watch(process, onTouch),
    },
  };
}

function mortalStore(world: LinkWorld, process: Process, store: Store): Store {
  return {
    ...store,
    write: mortalWrite(world, process, store, {
      deadliness: deadliness(process),
      counted: 'killed right after a commit',
    }),
    close: () => {},
  };
}

/** A router writes more often than any other: as mortal as they are, it would hardly ever carry anything. */
export const deadliness = ({ kind }: Process): number => (kind === 'router' ? 0.3 : 1);
