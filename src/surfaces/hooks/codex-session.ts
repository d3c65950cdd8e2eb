// SessionStart and SessionEnd of Codex: starts the companion of a thread, or tells it that the session has ended. Only the
// packaged plugin has this hook, so that a call by hand does nothing.

import type { CompanionHeard } from '../../protocol/companion.ts';
import type { HookOutcome } from '../../protocol/hook-outcome.ts';
import { isThreadId } from '../../protocol/thread.ts';
import type { HookPayload } from './input.ts';
import type { Said } from './outcome.ts';

export interface CodexSession {
  payload: HookPayload;
  /** The hook is the plugin's. */
  packaged: boolean;
  /** The owner wants no bell here: another process of ours rings for this host. */
  silent: boolean;
  /** An absolute path of a directory that is there. */
  isPlace(directory: string): boolean;
}

export interface CompanionPort {
  /** Resolves with undefined once it is registered, or while it still tries; with the reason where it gave up. */
  start(thread: string, workspace: string): Promise<string | undefined>;
  end(thread: string, workspace: string): Promise<CompanionHeard>;
}

const endReasons: Readonly<Record<CompanionHeard, string>> = {
  heard: 'companion told',
  declined: 'companion of another directory',
  unheard: 'companion did not answer',
  none: 'no companion',
};
const startSources: ReadonlySet<string | undefined> = new Set(['startup', 'resume']);

export async function codexSession(
  { payload, packaged, silent, isPlace }: CodexSession,
  companion: CompanionPort,
): Promise<Said> {
  const { event, source, session_id: thread, cwd } = payload;
  if (!packaged) return said({ outcome: 'skipped', reason: 'not the plugin' });
  if (silent) return said({ outcome: 'skipped', reason: 'switched off' });
  if (thread === undefined || !isThreadId(thread))
    return said({ outcome: 'skipped', reason: 'no thread id' });
  if (cwd === undefined) return said({ outcome: 'skipped', reason: 'no directory' });
  if (event === 'SessionEnd') {
    const heard = await companion.end(thread, cwd);
    return said({ outcome: heard === 'heard' ? 'notified' : 'skipped', reason: endReasons[heard] });
  }
  if (event !== 'SessionStart' || !startSources.has(source))
    return said({ outcome: 'skipped', reason: 'no start of a session' });
  if (!isPlace(cwd)) return said({ outcome: 'skipped', reason: 'no such directory' });
  const why = await companion.start(thread, cwd);
  if (why === undefined) return said({ outcome: 'notified', reason: 'companion started' });
  return {
    stdout: '',
    stderr: `postbell: session registration failed. ${why}\n`,
    outcome: { outcome: 'error', reason: `companion: ${why.split(':', 1)[0]}` },
  };
}

const said = (outcome: HookOutcome): Said => ({ stdout: '', stderr: '', outcome });
