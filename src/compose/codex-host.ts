// Which Codex started this process, and how: by the processes above it.

import { executable, startTime, walkUp } from '../platform/processes.ts';
import { limits } from '../protocol/limits.ts';
import type { HostProcess } from '../sessions/alias.ts';

export interface CodexHost {
  process: HostProcess;
  /** Its program; the name alone, for PATH to find, where that is not to be seen. */
  file: string;
  /** It runs one prompt and ends, and takes an item of the queue with it. */
  isExec: boolean;
  /** An app-server: threads of several terminals may share it, and its environment. */
  isShared: boolean;
}

/** Packages call the program by its target, too. */
const isCodex = (word: string): boolean => /(^|\/)codex(-[\w-]*)?(\.exe)?$/.test(word);
const isShell = (word: string): boolean => /(^|\/)-?(sh|bash|dash|zsh|ksh|fish|env|timeout)$/.test(word);

/** The nearest Codex above this process, else the nearest process that is no shell; undefined where neither can be seen. */
export function codexHost(pid: number = process.pid): CodexHost | undefined {
  const above = walkUp(pid, limits.ancestryMax);
  const found =
    above.find(({ words }) => isCodex(words[0] ?? '')) ??
    above.find(({ words }) => words[0] !== undefined && !isShell(words[0]));
  const start_time = found && startTime(found.pid);
  if (found === undefined || start_time === undefined) return undefined;
  const named = isCodex(found.words[0] ?? '');
  const verb = named ? commandIn(found.words.slice(1)) : undefined;
  return {
    process: { pid: found.pid, start_time },
    file: (named ? executable(found.pid) : undefined) ?? 'codex',
    isExec: verb === 'exec' || verb === 'e',
    isShared: verb === 'app-server',
  };
}

/** Whether Codex itself started this process. */
export const isChildOfCodex = (): boolean => isCodex(walkUp(process.pid, 1)[0]?.words[0] ?? '');

/** Options of Codex that take the next word, so that it is no command. */
const valued =
  /^(-c|--config|-p|--profile|-m|--model|-C|--cd|-s|--sandbox|-a|--ask-for-approval|-i|--image|--enable|--disable|--remote|--remote-auth-token-env|--local-provider|--add-dir)$/;

/** The command among the words that follow the program; undefined for a terminal session, whose prompt may be any word. */
function commandIn(words: readonly string[]): string | undefined {
  const at = words.findIndex((word, n) => !word.startsWith('-') && !valued.test(words[n - 1] ?? ''));
  return words[at];
}
