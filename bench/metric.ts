// What a measurement gives back: the measured thing beside its yardstick from the same run.

/** One row of the table. */
export interface Metric {
  /** As in the list of targets; a letter where one target has several cases. */
  id: string;
  what: string;
  unit: 'ms' | 'MiB' | 'KiB' | 'a minute' | 'a second' | 'a send' | 'a record' | 'sends' | 'of 1';
  measured: number;
  /** Absent where the target is a plain figure. */
  yardstick?: { what: string; value: number };
  /** At most this, or with `atLeast` no less: of the ratio where there is a yardstick, else of `measured`. */
  target?: number;
  stretch?: number;
  atLeast?: true;
  note?: string;
}

export interface Plan {
  /** The bundled product. */
  program: string;
  /** Throw-away; each measurement makes its own folder in it. */
  directory: string;
  quick: boolean;
}

/** A measurement that cannot be made here says why. */
export interface Skipped {
  id: string;
  what: string;
  why: string;
}

export type Outcome = Metric | Skipped;

/** What is compared with the target. */
export function figure({ measured, yardstick }: Metric): number {
  return yardstick === undefined ? measured : measured / yardstick.value;
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** Nearest rank. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const value = sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
  if (value === undefined) throw new Error('no values');
  return value;
}

/**
 * Runs all of `things` in turn, round by round, so that a slow moment of the machine hits each of them.
 * @param things each gives one value of one round
 * @returns the values of each, the first `warmUp` rounds left out
 */
export async function alternate<K extends string>(
  rounds: number,
  warmUp: number,
  things: Readonly<Record<K, () => number | Promise<number>>>,
): Promise<Record<K, number[]>> {
  const names = Object.keys(things) as K[];
  const values = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<K, number[]>;
  for (let round = 0; round < warmUp + rounds; round += 1) {
    for (const name of names) {
      const value = await things[name]();
      if (round >= warmUp) values[name].push(value);
    }
  }
  return values;
}

/** Milliseconds that `work` takes. */
export async function timed(work: () => unknown): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
