// What became of each hook that ran: one line of JSON each, for doctor and for whoever asks why nothing was said.
// Reasons are codes and counts; never payload, names or SQL.

import { appendFileSync, lstatSync, renameSync } from 'node:fs';
import { limits } from '../protocol/limits.ts';

export interface HookOutcome {
  hook: string;
  /** ISO 8601 UTC. */
  time: string;
  /** As the manifest names it; null where it names none. */
  host: string | null;
  outcome: 'wrote' | 'notified' | 'skipped' | 'error';
  reason: string;
}

/** Throws where it cannot be written. A full log is kept as `<file>.1`, once. */
export function appendOutcome(file: string, outcome: HookOutcome): void {
  const bytes = lstatSync(file, { throwIfNoEntry: false })?.size ?? 0;
  const line = `${JSON.stringify(outcome)}\n`;
  if (bytes > 0 && bytes + Buffer.byteLength(line) > limits.outcomeLogBytesMax) renameSync(file, `${file}.1`);
  appendFileSync(file, line, { mode: 0o600 });
}
