// A program that is spoken with line by line, and ended when it has said what was asked, or after its time.

import { spawn } from 'node:child_process';
import type { Environment } from './environment.ts';

/** What a program may say before it is taken for broken. */
const heardCharactersMax = 4_194_304;

export interface Hearing<T> {
  say?: string;
  end?: T;
}

/**
 * Starts the program in a process group of its own, says `opening`, and hears its lines until one of them ends it. The group
 * is killed in any case, and has ended when this resolves.
 */
export async function converse<T>(
  file: string,
  words: readonly string[],
  options: { env: Environment; cwd: string; timeoutMs: number; opening: string },
  hear: (line: string) => Hearing<T>,
): Promise<{ heard: T } | { why: string }> {
  const { env, cwd, timeoutMs, opening } = options;
  const child = spawn(file, [...words], {
    env: env as NodeJS.ProcessEnv,
    cwd,
    detached: true,
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const gone = new Promise<string>((resolve) => {
    child.on('error', ({ code }: NodeJS.ErrnoException) => resolve(`cannot be started (${code})`));
    child.on('exit', (code, signal) => resolve(`ended with ${code ?? signal}`));
  });
  const said = new Promise<{ heard: T } | { why: string }>((resolve) => {
    const late = setTimeout(
      () => resolve({ why: `does not answer within ${timeoutMs / 1_000} s` }),
      timeoutMs,
    );
    const finish = (outcome: { heard: T } | { why: string }): void => {
      clearTimeout(late);
      resolve(outcome);
    };
    void gone.then((why) => finish({ why }));
    let text = '';
    let heard = 0;
    child.stdin.on('error', () => {});
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      heard += chunk.length;
      if (heard > heardCharactersMax) return finish({ why: 'says more than an answer' });
      const lines = (text + chunk).split('\n');
      text = lines.pop() as string;
      try {
        for (const line of lines) {
          const { say, end } = hear(line);
          if (end !== undefined) return finish({ heard: end });
          if (say !== undefined) child.stdin.write(say);
        }
      } catch {
        finish({ why: 'says what cannot be read' });
      }
    });
    child.stdin.write(opening);
  });
  const outcome = await said;
  if (child.pid === undefined) return outcome;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // all of it has ended
  }
  await gone;
  return outcome;
}
