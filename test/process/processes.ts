// Processes of this machine as Linux shows them, to be looked at; nothing is done to them.

import { readdirSync, readFileSync } from 'node:fs';

export interface Process {
  pid: number;
  words: string[];
  /** `NAME=value`, as it was when the process began. */
  environment: string[];
}

/** Parts of such a file; none where the process has ended or is another user's. */
function partsOf(pid: number, file: 'cmdline' | 'environ'): string[] {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8').split('\0').slice(0, -1);
  } catch {
    return [];
  }
}

export const wordsOf = (pid: number): string[] => partsOf(pid, 'cmdline');
export const environmentOf = (pid: number): string[] => partsOf(pid, 'environ');

const pids = (): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => pid !== process.pid);

/** Processes one of whose words holds this text. */
export const processesWith = (text: string): { pid: number; words: string[] }[] =>
  pids()
    .map((pid) => ({ pid, words: wordsOf(pid) }))
    .filter(({ words }) => words.some((word) => word.includes(text)));

/** Processes whose HOME, when they began, was this directory or lay in it. */
export const processesOf = (home: string): Process[] =>
  pids()
    .map((pid) => ({ pid, words: wordsOf(pid), environment: environmentOf(pid) }))
    .filter(({ environment }) => environment.some((one) => `${one}/`.startsWith(`HOME=${home}/`)));

/** Companions of Codex threads with this HOME. */
export const companionsOf = (home: string): Process[] =>
  processesOf(home).filter(({ words }) => words.includes('companion'));
