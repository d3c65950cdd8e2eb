import { vi } from 'vitest';

const asked = Number(process.env.FUZZ_RUNS ?? '');
const isLong = Number.isSafeInteger(asked) && asked > 0;

// A long search takes as long as it takes.
if (isLong) vi.setConfig({ testTimeout: 24 * 3_600_000 });

/** How often a property is tried: FUZZ_RUNS times where that is set, for a long search. */
export function runs(usually: number): number {
  return isLong ? asked : usually;
}
