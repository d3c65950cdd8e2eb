// The project of a directory, and the one that a session is bound to.

import { fileURLToPath } from 'node:url';
import { sha256Hex } from '../crypto/hash.ts';
import { type Environment, setting } from '../platform/environment.ts';
import { projectIdentity } from '../platform/project.ts';
import { isRefusal, Refusal, type Result } from '../protocol/errors.ts';
import { projectId } from '../protocol/project.ts';

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
    const directories = claude === undefined ? (await roots()).flatMap(directoryOf) : [claude];
    const [directory] = directories;
    if (directory === undefined)
      return new Refusal('project_unavailable', 'no project is bound to this session; pass project');
    if (directories.length > 1)
      return new Refusal('project_ambiguous', 'several workspace roots; pass project');
    return projectOf(directory);
  };
  return async () => {
    const found = bound ?? (await find());
    if (!isRefusal(found)) bound = found;
    return found;
  };
}

/** A file URL's directory; nothing for any other. */
function directoryOf(uri: string): string[] {
  try {
    return [fileURLToPath(uri)];
  } catch {
    return [];
  }
}
