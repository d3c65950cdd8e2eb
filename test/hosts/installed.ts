import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { claudeBinary } from '../../tools/hosts.mjs';

function missing(): string | undefined {
  if (!claudeBinary()) return 'Claude Code is not installed (run `node tools/hosts.mjs`)';
  try {
    execFileSync('tmux', ['-V']);
    return undefined;
  } catch {
    return 'tmux is not installed';
  }
}

/** `describe` for tests that need Claude Code and tmux: skipped, with one line saying why, where one is missing; a failure in CI. */
export function describeWithClaude(name: string, body: () => void): void {
  const why = missing();
  if (!why) {
    describe(name, body);
    return;
  }
  if (process.env.CI) it(`${name} can run`, () => expect.fail(why));
  else console.log(`skipped: ${name}: ${why}`);
  describe.skip(name, body);
}
