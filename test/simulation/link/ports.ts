// The ports of one process of one machine. A write may come late, be cut off by the death of the process, or be the last thing
// that it did: then nobody goes on behind the await.

import type { Clock } from '../../../src/ports/clock.ts';
import type { Random } from '../../../src/ports/random.ts';
import type { Store } from '../../../src/ports/store.ts';
import type { Wake } from '../../../src/ports/wake.ts';
import { storeOver } from '../../../src/store/open.ts';
import { Killed } from '../disk.ts';
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
  const { dice } = world;
  return {
    ...store,
    write: (work) =>
      new Promise((resolve, reject) => {
        const begin = (): void => {
          if (!process.alive) return;
          store.write(work).then(
            (value) => afterCommit(world, process, () => resolve(value)),
            (error) => (error instanceof Killed ? world.kill(process) : reject(error)),
          );
        };
        if (dice.chance(world.faults.lateWrite)) world.later(process, 'write', world.delayMs(), begin);
        else begin();
      }),
    close: () => {},
  };
}

/** The commit stands, whatever becomes of the process that made it. */
function afterCommit(world: LinkWorld, process: Process, goOn: () => void): void {
  const { dice, faults } = world;
  if (!process.alive) return;
  if (dice.chance(faults.killAfterWrite * deadliness(process))) {
    world.tally.count('killed right after a commit');
    world.kill(process);
  } else if (dice.chance(faults.lateWrite)) world.later(process, 'committed', world.delayMs(), goOn);
  else goOn();
}

/** A router writes more often than any other: as mortal as they are, it would hardly ever carry anything. */
export const deadliness = ({ kind }: Process): number => (kind === 'router' ? 0.3 : 1);
