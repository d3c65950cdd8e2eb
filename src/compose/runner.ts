// What the runners of hosts have in common: a host of their own that they start, speak for and end.

import type { Environment } from '../platform/environment.ts';
import { say } from '../platform/stderr.ts';
import { harmless } from '../protocol/json.ts';
import { endingSignals, endOnSignal } from './ending.ts';

/** The end of a runner: once, and said where it is a failure. */
export interface RunnerEnd {
  /** It has begun. */
  readonly begun: boolean;
  /** As a signal would. */
  now(): void;
  /** Says it, and ends with status 1; nothing, where the end has begun. */
  failing(text: string): void;
}

export function runnerEnd(close: () => Promise<void>): RunnerEnd {
  let begun = false;
  const now = endOnSignal(() => {
    begun = true;
    return close();
  });
  return {
    get begun() {
      return begun;
    },
    now,
    failing: (text) => {
      if (begun) return;
      process.exitCode = 1;
      say(text);
      now();
    },
  };
}

/**
 * A signal ends the process with status 0, as it would later, while there is nothing yet to end in order.
 * @returns from when on there is
 */
export function endAtOnce(): () => void {
  const end = (): never => process.exit(0);
  for (const signal of endingSignals) process.on(signal, end);
  return () => {
    for (const signal of endingSignals) process.off(signal, end);
  };
}

/** Says it the first time only. */
export function lineOnce(text: string): () => void {
  let said = false;
  return () => {
    if (!said) line(text);
    said = true;
  };
}

/** Says a line that may hold words of the host. */
export const line = (text: string): void => say(`postbell: ${harmless(text)}\n`);

/** Of a session of a host, where this runner was started inside one: what the runner starts is no part of it. */
const ofSession =
  /^(?:CLAUDECODE|CLAUDE_(?:PID|PROJECT_DIR|CODE_(?:SESSION_ID|ENTRYPOINT|SESSION_ATTENDED|MESSAGING_\w+))|CODEX_(?:THREAD_ID|SESSION_ID|TOOL_CALL_ID|CI)|POSTBELL_(?:CHANNELS|SESSION))$/;

export function outsideSessions(environment: Environment): Record<string, string> {
  const kept = Object.entries(environment).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && !ofSession.test(entry[0]),
  );
  return Object.fromEntries(kept);
}
