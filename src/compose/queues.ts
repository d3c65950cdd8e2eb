// The way from the router to the queues of hosts. What it needs is loaded when the first question is due, which for most
// routers is never.

import { type Environment, ownEnvironment } from '../platform/environment.ts';
import type { Clock } from '../ports/clock.ts';
import type { AskQueue, HostPlace } from '../ports/releases.ts';
import { limits } from '../protocol/limits.ts';

const defaultPlace: HostPlace = { program: 'codex', home: null };

export function codexQueues(environment: Environment, clock: Clock): AskQueue {
  return async ({ place, ...submission }, isOurs, abort) => {
    const { askThroughProxy } = await import('../hosts/codex/release.ts');
    const { program, home } = place ?? defaultPlace;
    const way = { program, environment: environmentFor(environment, home), clock, abort };
    return askThroughProxy({ ...way, waitMs: limits.releaseAskMs }, submission, isOurs);
  };
}

/** As little as finds the program and the home; nothing of Postbell's. */
function environmentFor(environment: Environment, home: string | null): Record<string, string> {
  const kept = Object.entries(ownEnvironment(environment)).filter(([name]) => !name.startsWith('POSTBELL_'));
  return { ...Object.fromEntries(kept), ...(home !== null && { CODEX_HOME: home }) };
}
