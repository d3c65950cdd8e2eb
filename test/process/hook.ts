// One run of a hook as Claude Code starts it, and what it left.

import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { Home } from './home.ts';
import { type Env, postbell } from './postbell.ts';

export interface HookRun {
  code: number | null;
  stdout: string;
  stderr: string;
  /** What the model is told; empty where nothing. */
  context: string;
  /** What the person is shown. */
  banner: string | undefined;
  /** The reason of a block. */
  block: string | undefined;
  ms: number;
  /** Records of hooks that this run left. */
  records: Record<string, unknown>[];
}

export function recordsOf(home: Home): Record<string, unknown>[] {
  const file = path.join(home.env.POSTBELL_HOME as string, 'hook-outcomes.jsonl');
  if (!existsSync(file)) return [];
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

/** @param payload what the host writes on stdin; a text as it is */
export async function runHook(
  home: Home,
  event: string,
  payload: object | string = {},
  {
    env = {},
    host = ['--host', 'claude'],
    plain = false,
  }: { env?: Env; host?: string[]; plain?: boolean } = {},
): Promise<HookRun> {
  const before = recordsOf(home).length;
  const began = performance.now();
  const run = await postbell(
    { ...home.env, CLAUDE_PROJECT_DIR: home.project, ...env },
    home.project,
    ['hook', event, ...host],
    typeof payload === 'string' ? payload : JSON.stringify(payload),
    plain,
  );
  const ms = performance.now() - began;
  const said = run.stdout === '' ? {} : (JSON.parse(run.stdout) as Record<string, unknown>);
  const output = said.hookSpecificOutput as { additionalContext?: string } | undefined;
  return {
    ...run,
    ms,
    context: output?.additionalContext ?? '',
    banner: said.systemMessage as string | undefined,
    block: said.decision === 'block' ? (said.reason as string) : undefined,
    records: recordsOf(home).slice(before),
  };
}
