// Writes of a process that may be late, or die of it: a commit stands, whatever becomes of its maker.

import type { Store } from '../../src/ports/store.ts';
import type { Dice } from './dice.ts';
import { Killed } from './disk.ts';
import type { Process } from './process.ts';
import type { Tally } from './tally.ts';

export interface Mortal {
  readonly dice: Dice;
  readonly tally: Tally;
  readonly faults: { readonly killAfterWrite: number; readonly lateWrite: number };
  kill(process: Process): void;
  later(owner: Process, label: string, ms: number, run: () => void): unknown;
  delayMs(): number;
}

/** How deadly a write is to its process, and how such a death is tallied. */
export interface Mortality {
  deadliness: number;
  counted: string;
}

export function mortalWrite(
  world: Mortal,
  process: Process,
  store: Store,
  mortality: Mortality,
): Store['write'] {
  return (work) =>
    new Promise((resolve, reject) => {
      const begin = (): void => {
        if (!process.alive) return;
        store.write(work).then(
          (value) => afterCommit(world, process, mortality, () => resolve(value)),
          (error) => (error instanceof Killed ? world.kill(process) : reject(error)),
        );
      };
      if (world.dice.chance(world.faults.lateWrite)) world.later(process, 'write', world.delayMs(), begin);
      else begin();
    });
}

function afterCommit(
  world: Mortal,
  process: Process,
  { deadliness, counted }: Mortality,
  goOn: () => void,
): void {
  const { dice, faults } = world;
  if (!process.alive) return;
  if (dice.chance(faults.killAfterWrite * deadliness)) {
    world.tally.count(counted);
    world.kill(process);
  } else if (dice.chance(faults.lateWrite)) world.later(process, 'committed', world.delayMs(), goOn);
  else goOn();
}
