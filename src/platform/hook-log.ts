// What became of each hook that ran: one line of JSON each, for doctor and for whoever asks why nothing was said.
// Reasons are codes and counts; never payload, names or SQL.

import type { HookOutcome } from '../protocol/hook-outcome.ts';
import { appendLine } from './private-log.ts';

export interface HookRecord extends HookOutcome {
  hook: string;
  /** ISO 8601 UTC. */
  time: string;
  /** As the manifest names it; null where it names none. */
  host: string | null;
}

/** Throws where it cannot be written. */
export const appendOutcome = (file: string, record: HookRecord): void =>
  appendLine(file, JSON.stringify(record));
