// Asks the installed Codex which hooks of the plugin a person trusts. Each run of Codex writes into its home, so it gets one of
// its own that is thrown away, in which the settings and the plugin's copy are links: the person's stays as it is.

import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { listenForTrust, openingOf, type Trust } from '../hosts/codex/trust.ts';
import { converse } from '../platform/dialogue.ts';
import { type Environment, ownEnvironment } from '../platform/environment.ts';
import { namesIn } from '../platform/look.ts';
import type { CodexFacts, Looked } from '../ports/inspection.ts';
import { version } from '../protocol/version.ts';

const askedMs = 10_000;

/** It would look for plugins of its maker's at once. */
const offline = {
  GIT_ALLOW_PROTOCOL: 'none',
  HTTPS_PROXY: 'http://127.0.0.1:9',
  HTTP_PROXY: 'http://127.0.0.1:9',
};

/** `missing` where there is nothing to ask about, or nobody to ask. */
export async function codexTrust(
  environment: Environment,
  { directory, program, plugin, unread }: Omit<CodexFacts, 'trust'>,
): Promise<Looked<Trust>> {
  if (program === undefined || plugin?.copy === undefined || unread.length > 0) return { state: 'missing' };
  let home: string;
  try {
    home = mkdtempSync(path.join(tmpdir(), 'postbell-codex-'));
  } catch (error) {
    return closed(`no directory for it in ${tmpdir()} (${(error as NodeJS.ErrnoException).code})`);
  }
  try {
    mirror(directory, home, plugin.copies);
    const asked = await converse(
      program,
      ['app-server'],
      {
        env: { ...ownEnvironment(environment), ...offline, CODEX_HOME: home },
        cwd: home,
        timeoutMs: askedMs,
        opening: openingOf(version),
      },
      listenForTrust(plugin.id, home),
    );
    return 'heard' in asked
      ? { state: 'found', value: asked.heard }
      : closed(`codex app-server ${asked.why}`);
  } catch (error) {
    return closed(`codex app-server: ${(error as NodeJS.ErrnoException).code ?? (error as Error).name}`);
  } finally {
    rmSync(home, { recursive: true, force: true, maxRetries: 3, retryDelay: 100 });
  }
}

const closed = (why: string) => ({ state: 'closed', why }) as const;

/** Links to the settings, managed ones too, and to the plugin's copies. */
function mirror(directory: string, home: string, copies: string): void {
  const names = namesIn(directory);
  for (const name of names.state === 'found' ? names.value : [])
    if (name.endsWith('.toml')) symlinkSync(path.join(directory, name), path.join(home, name));
  const there = path.join(home, path.relative(directory, copies));
  mkdirSync(path.dirname(there), { recursive: true });
  symlinkSync(copies, there);
}
