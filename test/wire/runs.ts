/** How often a property is tried: FUZZ_RUNS times where that is set, for a long search. */
export function runs(usually: number): number {
  const asked = Number(process.env.FUZZ_RUNS ?? '');
  return Number.isSafeInteger(asked) && asked > 0 ? asked : usually;
}
