// Who a process is: from its environment and its host process, never from text.

import { type Environment, setting } from '../platform/environment.ts';
import { commandLine, isAlive, parentOf, startTime } from '../platform/processes.ts';
import { limits } from '../protocol/limits.ts';
import { isSessionId, sessionIdRule } from '../protocol/scope.ts';
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

/** Why a pinned id does not count; undefined where there is none, or a valid one. */
export function pinIgnored(environment: Environment): string | undefined {
  const pinned = setting(environment, 'POSTBELL_SESSION');
  return pinned === undefined || isSessionId(pinned) ? undefined : sessionIdRule;
}

/**
 * The host's own process, by which its hooks and its servers know each other: named by it, else the nearest ancestor
 * called claude, else `fallback`.
 */
export function hostProcess(environment: Environment, fallback?: number): HostProcess | undefined {
  if (process.platform === 'win32') return undefined;
  const pid = hostPid(environment, process.pid, fallback);
  const start_time = pid === undefined ? undefined : startTime(pid);
  return pid === undefined || start_time === undefined ? undefined : { pid, start_time };
}

/** As that, of the process `of` with its environment. */
export function hostPid(environment: Environment, of: number, fallback?: number): number | undefined {
  const named = Number(setting(environment, 'CLAUDE_PID'));
  return Number.isInteger(named) && isAlive(named) ? named : (claudeAncestor(of) ?? fallback);
}

/** Whether Codex started this process: it may run a hook synchronously that waits, and hold up its turn. */
export const underCodex = (environment: Environment): boolean =>
  setting(environment, 'CODEX_THREAD_ID') !== undefined && environment.CLAUDECODE !== '1';

/** Whether the host that started this process is known to be gone: then nobody ever tells it to end. */
export function hostIsGone(environment: Environment): boolean {
  const named = Number(setting(environment, 'CLAUDE_PID'));
  if (Number.isInteger(named)) return !isAlive(named);
  return environment.CLAUDECODE === '1' && process.ppid === 1 && claudeAncestor() === undefined;
}

function claudeAncestor(of: number = process.pid): number | undefined {
  let pid = parentOf(of);
  for (let level = 0; pid !== undefined && level < limits.ancestryMax; level += 1) {
    if (/(^|\/)claude(\.exe)?$/.test(commandLine(pid)?.[0] ?? '')) return pid;
    pid = parentOf(pid);
  }
  return undefined;
}

/**
 * Whether the host's listener can run at all: not switched off, and not under a host that takes one prompt and ends,
 * which would run it synchronously and never end. Where it cannot, the session has no bell.
 */
export function listenerRuns(environment: Environment, host: HostProcess | undefined): boolean {
  if (channelsOn(environment) || environment.POSTBELL_LISTENER === 'off') return false;
  return !isUnattended(environment) || readsStream(host?.pid);
}

/** The plugin's own server is the channel of its session: no listener runs, and no channel runner beside it. */
export function channelsOn(environment: Environment): boolean {
  return /^(?:1|true)$/i.test(environment.POSTBELL_CHANNELS ?? '');
}

/** Nobody sits at the host. */
export function isUnattended(environment: Environment): boolean {
  return environment.CLAUDE_CODE_SESSION_ATTENDED === '0' || environment.CLAUDE_CODE_ENTRYPOINT === 'sdk-cli';
}

function readsStream(pid: number | undefined): boolean {
  const words = pid === undefined ? undefined : commandLine(pid);
  return words !== undefined && /(^| )--input-format[= ]stream-json( |$)/.test(words.join(' '));
}

/** Whether the very same process still runs; an unknown one counts as running. */
export function stillRuns(host: HostProcess | undefined): boolean {
  return host === undefined || (isAlive(host.pid) && startTime(host.pid) === host.start_time);
}
