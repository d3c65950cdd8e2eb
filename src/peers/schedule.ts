// When a message is posted again. Until a relay takes it: 1, 2, 4 … 300 s; from then on, until its receiver says that it is stored:
// after 60 s, 5 min, 15 min, then hourly.

const secondMs = 1_000;
const longestMs = 300_000;
const untilStoredMs = [60_000, 300_000, 900_000] as const;
const hourMs = 3_600_000;

/**
 * So often in a row a queue is unknown before it counts as left: about 25 minutes. A relay that lost its store knows none either, but
 * a machine that is up registers again within one.
 */
export const leftFailures = 12;

/** No pause of this page is longer, nor one that a relay names. */
export const longestPauseMs = hourMs;

/** @param failures in a row, this one included; @param jitter 0 to 1, which makes it up to a fifth longer */
export function retryMs(failures: number, jitter: number): number {
  const doubled = secondMs * 2 ** Math.min(failures - 1, 20);
  return Math.round(Math.min(doubled, longestMs) * (1 + jitter / 5));
}

/** @param accepts how often the relay took it, this time included */
export const repostMs = (accepts: number): number => untilStoredMs[accepts - 1] ?? hourMs;
