/**
 * How long until the next whole `everyMs` of a process: what it does at its ease it does at the same moments, so that it wakes
 * up once for all of it. At least 1.
 */
export const untilBeat = (elapsedMs: number, everyMs: number): number =>
  Math.ceil(everyMs - (elapsedMs % everyMs));
