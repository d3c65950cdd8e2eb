// Shows every checker what happens, and reports the first promise that is broken.

import type { Checker, Deed, MakeChecker, Sight } from './checker.ts';
import type { Change } from './disk.ts';
import type { Process } from './process.ts';

export class Judges {
  readonly #checkers: Checker[];
  readonly #sight: Omit<Sight, 'broken'>;

  constructor(
    makers: readonly MakeChecker[],
    sight: Omit<Sight, 'broken'>,
    onBroken: (checker: string, text: string) => void,
  ) {
    this.#sight = sight;
    this.#checkers = makers.map((make) => {
      const checker: Checker = make({ ...sight, broken: (text) => onBroken(checker.name, text) });
      return checker;
    });
  }

  commit(changes: readonly Change[], by: Process | undefined): void {
    for (const checker of this.#checkers) checker.beforeCommit?.(changes, by);
    this.#sight.facts.apply(changes);
    for (const checker of this.#checkers) checker.afterCommit?.(changes, by);
  }

  deed(deed: Deed, by: Process | undefined): void {
    for (const checker of this.#checkers) checker.onDeed?.(deed, by);
  }

  async look(): Promise<void> {
    for (const checker of this.#checkers) await checker.look?.();
  }

  calm(): void {
    for (const checker of this.#checkers) checker.onCalm?.();
  }

  atEnd(): void {
    for (const checker of this.#checkers) checker.atEnd?.();
  }
}
