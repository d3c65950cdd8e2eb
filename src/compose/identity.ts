// Who a process is: from its environment and its host process, never from text.

import { type Environment, setting } from '../platform/environment.ts';
import { isAlive, startTime } from '../platform/processes.ts';
import { isRefusal } from '../protocol/errors.ts';
import { isSessionId, readName, sessionScopedPrincipal } from '../protocol/scope.ts';
import type { HostKind } from '../protocol/session.ts';
import type { HostProcess } from '../sessions/alias.ts';

/** The session that the host names in the environment of its children. */
export function hostSession(environment: Environment): { id: string; host: HostKind } | undefined {
  const claude = setting(environment, 'CLAUDE_CODE_SESSION_ID');
  if (claude !== undefined && isSessionId(claude)) return { id: claude, host: 'claude' };
  const codex = setting(environment, 'CODEX_THREAD_ID');
  if (codex !== undefined && isSessionId(codex)) return { id: codex, host: 'codex' };
  return undefined;
}

/** The id that a person pinned. */
export function pinnedSession(environment: Environment): string | undefined {
  const pinned = setting(environment, 'POSTBELL_SESSION');
  return pinned !== undefined && isSessionId(pinned) ? pinned : undefined;
}

/** The declared recipient if it is valid; else a principal that only this session has. */
export function principalOf(environment: Environment, host: HostKind, sessionId: string): string {
  const declared = environment.POSTBELL_RECIPIENT;
  const name = declared === undefined ? undefined : readName('POSTBELL_RECIPIENT', declared);
  return name === undefined || isRefusal(name) ? sessionScopedPrincipal(host, sessionId) : name;
}

/** The process with its start time, if it can be seen. */
export function hostProcess(pid: number | undefined): HostProcess | undefined {
  const start_time = pid === undefined ? undefined : startTime(pid);
  return pid === undefined || start_time === undefined ? undefined : { pid, start_time };
}

/** Whether the very same process still runs; an unknown one counts as running. */
export function stillRuns(host: HostProcess | undefined): boolean {
  return host === undefined || (isAlive(host.pid) && startTime(host.pid) === host.start_time);
}
