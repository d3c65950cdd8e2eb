// Processes of this account that run now, where the system shows their words and variables (Linux). Of the variables only
// those are taken that say where Postbell's files lie and whose process it is.

import { readlinkSync } from 'node:fs';
import path from 'node:path';
import type { Looked } from '../ports/inspection.ts';
import type { Environment } from './environment.ts';
import { lookAt, namesIn, textOfProcess } from './look.ts';

const taken = /^(?:POSTBELL_\w+|HOME|XDG_STATE_HOME|USERPROFILE|CLAUDE_PID|CLAUDE_CODE_SESSION_ID)$/;
/** Variables whose relative value is of that process's directory. */
const paths = ['POSTBELL_HOME', 'POSTBELL_DB'];

export interface RunningProcess {
  pid: number;
  words: readonly string[];
  environment: Environment;
}

/** Those whose words are asked for; `missing` where the system shows none. One that ends meanwhile is left out. */
export function runningProcesses(
  asked: (words: readonly string[]) => boolean,
): Looked<readonly Looked<RunningProcess>[]> {
  const names = lookAt('/proc/self/environ').state === 'found' ? namesIn('/proc') : undefined;
  if (names?.state !== 'found') return { state: 'missing' };
  const found = names.value.flatMap((name): Looked<RunningProcess>[] => {
    const pid = /^\d+$/.test(name) ? Number(name) : 0;
    const directory = pid > 0 ? lookAt(`/proc/${pid}`) : undefined;
    if (directory?.state !== 'found' || !directory.value.own) return [];
    const words = fieldsOf(pid, 'cmdline');
    if (words.state !== 'found' || !asked(words.value)) return [];
    const variables = fieldsOf(pid, 'environ');
    if (variables.state === 'missing') return [];
    if (variables.state === 'closed') return [{ state: 'closed', why: `process ${pid} ${variables.why}` }];
    const environment = environmentIn(variables.value, pid);
    return [{ state: 'found', value: { pid, words: words.value, environment } }];
  });
  return { state: 'found', value: found };
}

function fieldsOf(pid: number, name: 'cmdline' | 'environ'): Looked<string[]> {
  const text = textOfProcess(pid, name);
  return text.state === 'found' ? { state: 'found', value: text.value.split('\0').slice(0, -1) } : text;
}

function environmentIn(lines: readonly string[], pid: number): Environment {
  const entries = lines.flatMap((line) => {
    const name = line.slice(0, Math.max(0, line.indexOf('=')));
    return taken.test(name) ? [[name, absolute(name, line.slice(name.length + 1), pid)] as const] : [];
  });
  return Object.fromEntries(entries);
}

function absolute(name: string, value: string, pid: number): string {
  if (!paths.includes(name) || value.trim() === '' || path.isAbsolute(value)) return value;
  try {
    return path.resolve(readlinkSync(`/proc/${pid}/cwd`), value);
  } catch {
    return value;
  }
}
