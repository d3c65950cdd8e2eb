// Which servers and listeners of sessions run now, each with its host, its store and its session.

import path from 'node:path';
import { type Environment, setting } from '../platform/environment.ts';
import { realPathOf, textOf } from '../platform/look.ts';
import { accountHome, type Places, placesOf } from '../platform/paths.ts';
import { parentOf } from '../platform/processes.ts';
import { type RunningProcess, runningProcesses } from '../platform/running.ts';
import type { Integration, Looked } from '../ports/inspection.ts';
import { isObject } from '../protocol/json.ts';
import { readLenientJson } from '../protocol/lenient-json.ts';
import { isSessionId } from '../protocol/scope.ts';
import { hostPid, hostSession, pinnedSession } from './identity.ts';

const roles = { mcp: 'server', wait: 'listener' } as const;
/** Options of Node may stand before the program. */
const wordsBeforeMax = 6;

/** `missing` where the system does not show the processes of others. */
export function runningIntegrations(
  environment: Environment,
  { database }: Places,
): Looked<readonly Looked<Integration>[]> {
  const running = runningProcesses((words) => commandOf(words) !== undefined);
  if (running.state !== 'found') return running;
  const home = accountHome(environment);
  const found = running.value.flatMap((one): Looked<Integration>[] => {
    if (one.state !== 'found') return [one];
    const value = integrationOf(one.value, { home, database: realDatabase(database) });
    return value === undefined ? [] : [{ state: 'found', value }];
  });
  return { state: 'found', value: found };
}

export const sessionsOf = (integrations: Looked<readonly Looked<Integration>[]>): string[] => {
  const all = integrations.state === 'found' ? integrations.value : [];
  const ids = all.flatMap((one) => (one.state === 'found' ? (one.value.session ?? []) : []));
  return [...new Set(ids)];
};

interface Command {
  role: Integration['role'];
  /** What follows the command's name. */
  flags: readonly string[];
}

/** `postbell mcp` or `postbell wait`, in whatever way it was started; a server that registers nothing is of no session. */
function commandOf(words: readonly string[]): Command | undefined {
  const at = words.slice(0, wordsBeforeMax).findIndex(isProgram);
  const name = at < 0 ? undefined : words[at + 1];
  const flags = words.slice(at + 2);
  if ((name !== 'mcp' && name !== 'wait') || flags.includes('--no-register')) return undefined;
  return { role: roles[name], flags };
}

/** The program, or the launcher of its plugin. */
function isProgram(word: string): boolean {
  const name = path.basename(word);
  if (name === 'postbell' || name === 'postbell.cjs') return true;
  if (name !== 'launch.cjs' || !path.isAbsolute(word)) return false;
  const manifest = textOf(path.join(path.dirname(word), '.claude-plugin', 'plugin.json'));
  const json = manifest.state === 'found' ? readLenientJson(manifest.value)?.value : undefined;
  return isObject(json) && json.name === 'postbell';
}

/** Undefined where nobody started it who still runs. */
function integrationOf(
  { pid, words, environment }: RunningProcess,
  here: { home: string; database: string },
): Integration | undefined {
  const command = commandOf(words) as Command;
  const parent = parentOf(pid);
  const host = hostPid(environment, pid, parent === 1 ? undefined : parent);
  if (host === undefined) return undefined;
  const database = realDatabase(placesOf(environment).database);
  const pinned = sessionFlag(command.flags) ?? pinnedSession(environment);
  const session = pinned ?? hostSession(environment)?.id;
  return {
    role: command.role,
    hostPid: host,
    database,
    ...(session !== undefined && { session }),
    pinned: pinned !== undefined,
    looked: database === here.database,
    ours: homeOf(environment) === here.home,
  };
}

const homeOf = (environment: Environment): string | undefined =>
  setting(environment, 'HOME') ?? setting(environment, 'USERPROFILE');

function sessionFlag(flags: readonly string[]): string | undefined {
  const at = flags.findIndex((flag) => flag === '--session' || flag.startsWith('--session='));
  const given = flags[at] === '--session' ? flags[at + 1] : flags[at]?.slice('--session='.length);
  return given !== undefined && isSessionId(given) ? given : undefined;
}

/** By its real directory: two names of one directory are no two stores. */
const realDatabase = (database: string): string =>
  path.join(realPathOf(path.dirname(database)), path.basename(database));
