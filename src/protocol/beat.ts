/** A timer may fire a little before its time, by what the process took since it last asked for the time. */
const earlyShare = 0.05;

/**
 * How long until the next whole `everyMs` of a process: what it does at its ease it does at the same moments, so that it wakes
 * up once for all of it. One that is as good as there counts as come. At least 1.
 */
export function untilBeat(elapsedMs: number, everyMs: number): number {
  const leftMs = Math.ceil(everyMs - (elapsedMs % everyMs));
  return leftMs < everyMs * earlyShare ? leftMs + everyMs : leftMs;
}
