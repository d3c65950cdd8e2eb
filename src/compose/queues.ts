// The way from the router to the queues of hosts. What it needs is loaded when the first question is due, which for most
// routers is never.

import type { Environment } from '../platform/environment.ts';
import type { Clock } from '../ports/clock.ts';
import type { AskQueue, HostPlace } from '../ports/releases.ts';
import { limits } from '../protocol/limits.ts';
import { codexEnvironment } from './codex-place.ts';

const defaultPlace: HostPlace = { program: 'codex', home: null };

export function codexQueues(environment: Environment, clock: Clock): AskQueue {
  return async ({ place, ...submission }, isOurs, abort) => {
    const { askThroughProxy } = await import('../hosts/codex/release.ts');
    if (abort.aborted) return 'no_answer';
    const { program, home } = place ?? defaultPlace;
    const way = { program, environment: codexEnvironment(environment, home ?? undefined), clock, abort };
    return askThroughProxy({ ...way, waitMs: limits.releaseAskMs }, submission, isOurs);
  };
}
