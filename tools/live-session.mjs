// What a live check can see of the session it is about: the product's own commands, what its hooks left, and what its listener
// printed. Nothing of the host's is read but the three variables that say whether somebody sits there.

import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import BetterSqlite3 from 'better-sqlite3';

export const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
export const program = path.join(root, 'dist', 'postbell.cjs');
const commandMs = 60_000;

/** Runs a program to its end. @returns code, stdout and stderr; a code that is no number where it could not start */
export const run = (file, words, { input = '', env = process.env, signal } = {}) =>
  new Promise((resolve) => {
    const child = execFile(file, words, { env, timeout: commandMs, signal }, (error, stdout, stderr) =>
      resolve({ code: error?.code ?? (error ? -1 : 0), stdout, stderr }),
    );
    child.stdin?.on('error', () => {});
    child.stdin?.end(input);
  });

/** The program with this data directory, and with nothing else that the account set for its own. */
export function postbellIn(data) {
  const rest = Object.entries(process.env).filter(([name]) => !name.startsWith('POSTBELL_'));
  const env = { ...Object.fromEntries(rest), POSTBELL_HOME: data };
  const command = (words, input) => run(process.execPath, [program, ...words], { env, input });
  return {
    command,
    /** The one JSON line of a command; throws what it said where it failed. */
    answer: async (words, input) => {
      const { code, stdout, stderr } = await command(words, input);
      if (code !== 0) throw new Error(`postbell ${words.slice(0, 2).join(' ')}: ${stderr.trim()}`);
      return JSON.parse(stdout);
    },
  };
}

/** The lines of the hooks' log. */
export function recordsIn(data) {
  const files = ['hook-outcomes.jsonl.1', 'hook-outcomes.jsonl'].map((name) => path.join(data, name));
  const lines = files
    .filter((file) => existsSync(file))
    .flatMap((file) => readFileSync(file, 'utf8').split('\n'));
  return lines.filter(Boolean).flatMap((line) => {
    try {
      return [JSON.parse(line)];
    } catch {
      return [];
    }
  });
}

/** When listeners printed, and how many messages the session was told of otherwise: by its Stop gate, or between two tools. */
export function ringsIn(data) {
  const store = new BetterSqlite3(path.join(data, 'postbell.db'), { readonly: true, timeout: 5_000 });
  try {
    const prints = store.prepare('SELECT prints FROM listener_cursor').pluck().all();
    const told = store.prepare('SELECT count(*) FROM reservation_cover WHERE told = 1').pluck().get();
    return { printsMs: prints.flatMap((text) => JSON.parse(text)), told };
  } finally {
    store.close();
  }
}

/** Whether a server or a companion of a session still has this data directory; false also where no process can be looked at. */
export const isInUse = (data) =>
  ownProcesses().some((pid) => {
    const words = fieldsOf(pid, 'cmdline') ?? [];
    const isOurs = words.includes('mcp') || words.includes('companion');
    return isOurs && fieldsOf(pid, 'environ')?.includes(`POSTBELL_HOME=${data}`);
  });

/**
 * Whether nobody sits at the session whose server has this data directory: `attended`, `unattended`, or `unseen` where no
 * such process can be looked at.
 */
export function attendanceIn(data) {
  for (const pid of ownProcesses()) {
    const words = fieldsOf(pid, 'cmdline');
    if (words === undefined || !words.includes('mcp')) continue;
    const variables = new Map(fieldsOf(pid, 'environ')?.map((line) => [line.split('=', 1)[0], line]) ?? []);
    const valueIn = (name) => variables.get(name)?.slice(name.length + 1);
    if (valueIn('POSTBELL_HOME') !== data) continue;
    const host = Number(valueIn('CLAUDE_PID') ?? parentOf(pid));
    const isPrint = fieldsOf(host, 'cmdline')?.some((word) => word === '-p' || word === '--print');
    return isPrint ||
      valueIn('CLAUDE_CODE_SESSION_ATTENDED') === '0' ||
      valueIn('CLAUDE_CODE_ENTRYPOINT') === 'sdk-cli'
      ? 'unattended'
      : 'attended';
  }
  return 'unseen';
}

function ownProcesses() {
  try {
    const names = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
    return names.filter(
      (pid) => statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.uid === process.getuid(),
    );
  } catch {
    return [];
  }
}

function fieldsOf(pid, name) {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'utf8').split('\0').slice(0, -1);
  } catch {
    return undefined;
  }
}

function parentOf(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1];
  } catch {
    return undefined;
  }
}
