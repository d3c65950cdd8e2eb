// When a process does what it does at its ease.

import { expect, it } from 'vitest';
import { untilBeat } from '../../src/protocol/beat.ts';

it.each([
  [0, 30_000],
  [10_000, 20_000],
  [30_000, 30_000],
  [30_000.4, 30_000],
  // A timer that came early is the moment, and no reason for another one right after it.
  [59_880.2, 30_120],
  [58_400, 1_600],
])('%d ms after its start a process has %d ms to the next moment of each 30 s', (elapsedMs, leftMs) => {
  expect(untilBeat(elapsedMs, 30_000)).toBe(leftMs);
});
