import { execFileSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type HostName, hostProgram, hosts } from '../../tools/hosts.mjs';
import { useClaude } from './claude.ts';

function missing(host: HostName, version: string): string | undefined {
  if (!hostProgram(host, version))
    return `${host} ${version} is not installed (run \`node tools/hosts.mjs ${host}\`)`;
  try {
    execFileSync('tmux', ['-V']);
    return undefined;
  } catch {
    return 'tmux is not installed';
  }
}

export const [tested, floor] = hosts['claude-code'].versions as readonly [string, string];

/** Where the time of a run in CI allows one version only; `.ci/run` names what it leaves out. */
export const bothButInCi: readonly string[] = process.env.CI ? [tested] : [tested, floor];

/**
 * `describe` for tests that need Claude Code and tmux: skipped, with one line saying why, where one is missing; a failure in
 * CI. Once for each version.
 */
export function describeWithClaude(
  name: string,
  body: (version: string) => void,
  versions: readonly string[] = [tested],
): void {
  for (const version of versions) {
    const title = `Claude Code ${version}: ${name}`;
    const why = missing('claude-code', version);
    if (why === undefined) {
      describe(title, () => {
        beforeAll(() => useClaude(version));
        afterAll(() => useClaude(undefined));
        body(version);
      });
      continue;
    }
    if (process.env.CI) it(`${title} can run`, () => expect.fail(why));
    else console.log(`skipped: ${title}: ${why}`);
    describe.skip(title, () => body(version));
  }
}

/** As that, for a host of which one version is run. */
export function describeWithHost(host: HostName, name: string, body: () => void): void {
  const [version] = hosts[host].versions;
  const title = `${host} ${version}: ${name}`;
  const why = missing(host, version);
  if (why === undefined) return void describe(title, body);
  if (process.env.CI) it(`${title} can run`, () => expect.fail(why));
  else console.log(`skipped: ${title}: ${why}`);
  describe.skip(title, body);
}
