// What every live check stands on: its own data directory, the terminal of its owner, and a report for its owner alone.

import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline/promises';
import { isInUse, postbellIn } from './live-session.mjs';

export const self = 'live-check';
const lookEveryMs = 500;

/** What ends a check before its verdict. */
export class Refused extends Error {}
/** As that, but something was asked and is reported. */
export class Stopped extends Error {}

/** Before anything is asked: a report that cannot be written at the end would be lost. @returns what keeps it */
export function unwritable(file) {
  try {
    if (file === '' || statSync(file, { throwIfNoEntry: false })?.isFile() === false) return 'it is no file';
    const directory = path.dirname(path.resolve(file));
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    accessSync(directory, constants.W_OK);
    return undefined;
  } catch (error) {
    return error.message;
  }
}

/** A data directory in which a socket fits, as the product itself says it; nothing is made where none does. */
export async function makeHome() {
  const planned = path.join(realpathSync(tmpdir()), 'pbl-XXXXXX');
  const { rows } = JSON.parse((await postbellIn(planned).command(['doctor', '--json'])).stdout);
  const { level, text } = rows.find(({ id }) => id === 'router-socket');
  if (level === 'fail') throw new Refused(`${text}; set TMPDIR to a shorter directory`);
  return mkdtempSync(planned.slice(0, -6));
}

/** Questions at the terminal; each wait ends when the owner gives up. */
export function openTerminal() {
  const given = new AbortController();
  const lines = createInterface({ input: process.stdin, output: process.stdout });
  const giveUp = () => given.abort();
  lines.on('SIGINT', giveUp).on('close', giveUp);
  for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT']) process.on(signal, giveUp);
  const stopped = () => new Stopped('it was given up');
  return {
    say: (text) => process.stdout.write(`${text}\n`),
    ask: async (text) => {
      try {
        return (await lines.question(`${text} `, { signal: given.signal })).trim();
      } catch {
        throw stopped();
      }
    },
    /** Resolves once `look` answers with something, or with undefined after `ms`. */
    until: async (ms, look) => {
      for (const endMs = performance.now() + ms; performance.now() < endMs; ) {
        if (given.signal.aborted) throw stopped();
        const found = await look();
        if (found !== undefined) return found;
        await new Promise((resolve) => setTimeout(resolve, lookEveryMs));
      }
      return undefined;
    },
    gaveUp: () => given.signal.aborted,
    close: () => {
      lines.off('close', giveUp);
      lines.close();
    },
  };
}

/** For its owner alone, also where the file was there. */
export function writeReport(file, report) {
  const draft = `${file}.${process.pid}`;
  writeFileSync(draft, `${JSON.stringify(report, null, 2)}\n`, { mode: 0o600, flag: 'wx' });
  renameSync(draft, file);
}

/** Nothing is taken from below a session that runs: its server would make the directory again. @returns what was left */
export function remove(home, sessionEnded) {
  if (isInUse(home)) return `A session still runs with ${home}: end it, then remove that.`;
  if (!sessionEnded && !existsSync('/proc/self'))
    return `A session may still run with ${home}: end it, then remove that.`;
  try {
    // A server that ends just now may write into it once more.
    rmSync(home, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
    return undefined;
  } catch (error) {
    return `${home} could not be removed whole (${error.code}).`;
  }
}
