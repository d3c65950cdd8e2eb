// Where the queue of a Codex thread is: the program that puts something there, and the home it reads.

import { type Environment, ownEnvironment, setting } from '../platform/environment.ts';

/** What a Codex needs that only queues, and nothing of ours. */
export function codexEnvironment(environment: Environment, home: string | undefined): Record<string, string> {
  const own = Object.entries(ownEnvironment(environment)).filter(([name]) => !name.startsWith('POSTBELL_'));
  return { ...Object.fromEntries(own), ...(home !== undefined && { CODEX_HOME: home }) };
}

/** The home of the Codex whose environment this is; undefined for the default. */
export const codexHome = (environment: Environment): string | undefined => setting(environment, 'CODEX_HOME');
