// Where the queue of a Codex thread is: the program that puts something there, and the home it reads.

import path from 'node:path';
import { type Environment, ownEnvironment, setting } from '../platform/environment.ts';

/** Where Codex keeps its queues, if not in its home. */
export const sqliteHome = 'CODEX_SQLITE_HOME';

/** What a Codex needs that only queues, and nothing of ours. */
export function codexEnvironment(environment: Environment, home: string | undefined): Record<string, string> {
  const own = Object.entries(ownEnvironment(environment)).filter(([name]) => !name.startsWith('POSTBELL_'));
  const sqlite = setting(environment, sqliteHome);
  return {
    ...Object.fromEntries(own),
    ...(home !== undefined && { CODEX_HOME: home }),
    ...(sqlite !== undefined && { [sqliteHome]: path.resolve(sqlite) }),
  };
}

/** The home of the Codex whose environment this is; undefined for the default. */
export function codexHome(environment: Environment): string | undefined {
  const home = setting(environment, 'CODEX_HOME');
  return home === undefined ? undefined : path.resolve(home);
}
