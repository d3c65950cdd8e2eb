// When a person last wrote to a session: one owner-private file a session, touched by the hook of its prompts.

import path from 'node:path';
import { fileName } from '../crypto/file-name.ts';
import { readPrivateFile, replacePrivateFile } from './files.ts';
import type { Places } from './paths.ts';

const markOf = ({ runtime }: Pick<Places, 'runtime'>, sessionId: string): string =>
  path.join(runtime, `prompt-${fileName(sessionId)}`);

export const markPrompt = (places: Pick<Places, 'runtime'>, sessionId: string, atMs: number): void =>
  replacePrivateFile(markOf(places, sessionId), `${atMs}\n`);

/** Under the newest of the session's ids; undefined where no hook of it ever saw a person's prompt. */
export function lastPromptMs(
  places: Pick<Places, 'runtime'>,
  sessionIds: readonly string[],
): number | undefined {
  const times = sessionIds.flatMap((id) => {
    const text = readPrivateFile(markOf(places, id))?.trim();
    return text !== undefined && /^\d{1,16}$/.test(text) ? [Number(text)] : [];
  });
  return times.length === 0 ? undefined : Math.max(...times);
}
