// The project of a directory, and the one that a session is bound to.

import { fileURLToPath } from 'node:url';
import { sha256Hex } from '../crypto/hash.ts';
import { atMost } from '../mailbox/patience.ts';
import { systemClock } from '../platform/clock.ts';
import { type Environment, setting } from '../platform/environment.ts';
import { projectIdentity } from '../platform/project.ts';
import { Fault, isRefusal, Refusal, type Result } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import { projectId } from '../protocol/project.ts';
import type { HostKind } from '../protocol/session.ts';

/** Of a host's hook: where it cannot be known in 2 s, nothing is said and nobody is rung by guess. */
export function projectOfHost(environment: Environment, host?: HostKind): Promise<string | undefined> {
  // A Codex that runs in a session of Claude Code has its variables, too.
  const claude = host === 'codex' ? undefined : setting(environment, 'CLAUDE_PROJECT_DIR');
  const found = projectOf(claude ?? '.').catch(() => undefined);
  return atMost(systemClock, found, limits.hookProjectWaitMs);
}

/** The automatic project id of the directory. */
export async function projectOf(directory: string): Promise<string> {
  return projectId(await projectIdentity(directory), sha256Hex);
}

/** Where Claude Code was started, else the client's one workspace root; never where this process happens to run. */
export function boundProject(
  environment: Environment,
  roots: () => Promise<string[]>,
): () => Promise<Result<string>> {
  let bound: string | undefined;
  const find = async (): Promise<Result<string>> => {
    const claude = setting(environment, 'CLAUDE_PROJECT_DIR');
    const uris = claude === undefined ? await roots() : [];
    const directories = claude === undefined ? uris.flatMap(directoryOf) : [claude];
    const [directory] = directories;
    if (directory === undefined && uris.length > 0)
      return new Refusal(
        'project_unavailable',
        'the client names no workspace root on this machine; pass project',
      );
    if (directory === undefined)
      return new Refusal('project_unavailable', 'no project is bound to this session; pass project');
    if (directories.length > 1)
      return new Refusal('project_ambiguous', 'several workspace roots; pass project');
    return projectOf(directory);
  };
  return async () => {
    const found = bound ?? (await find().catch(unavailable));
    if (!isRefusal(found)) bound = found;
    return found;
  };
}

/** Not to be known now, which another call may find otherwise. */
function unavailable(error: unknown): Refusal {
  if (error instanceof Fault && error.code === 'project_unavailable')
    return new Refusal(error.code, error.message, error.details);
  throw error;
}

/** A file URL's directory; nothing for any other. */
function directoryOf(uri: string): string[] {
  try {
    return [fileURLToPath(uri)];
  } catch {
    return [];
  }
}
