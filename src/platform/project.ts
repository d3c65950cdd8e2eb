// The project of a directory: by its git remote where it has one, else by its real path. Git itself is asked, so
// that rewrites in its configuration apply.

import { execFile } from 'node:child_process';
import { realpathSync } from 'node:fs';
import path from 'node:path';
import { type Identity, locatorOf } from '../protocol/project.ts';

const gitWaitMs = 2_000;

/** What the directory is known by. One id for every sub-directory, worktree and clone of a remote. */
export async function projectIdentity(directory: string): Promise<Identity> {
  // Both at once: a hook waits for this, and each start of git takes a fifth of a bare node's.
  const [place, remotes = ''] = await Promise.all([
    git(directory, [
      'rev-parse',
      '--is-bare-repository',
      '--path-format=absolute',
      '--git-common-dir',
      '--show-superproject-working-tree',
    ]),
    git(directory, ['remote', '--verbose']),
  ]);
  if (place === undefined) return { kind: 'path', path: realpathSync(directory) };
  const [bare, commonDirectory = directory] = place.split('\n');
  const locator = remoteLocator(remotes);
  if (locator !== undefined) return { kind: 'git', locator };
  return { kind: 'path', path: await mainWorkTree(directory, commonDirectory, bare === 'true') };
}

/**
 * `origin`, else the only remote, else none. Git lists each as `NAME<tab>URL (fetch)` and again for pushing; a remote
 * without a URL as its name alone.
 */
function remoteLocator(remotes: string): string | undefined {
  const urls = new Map<string, string | undefined>();
  for (const line of remotes.split('\n')) {
    const [, name, url] = /^([^\t]+)(?:\t(.*) \(fetch\))?/.exec(line) ?? [];
    if (name !== undefined) urls.set(name, urls.get(name) ?? url);
  }
  const url = urls.has('origin') || urls.size !== 1 ? urls.get('origin') : [...urls.values()][0];
  return url === undefined ? undefined : locatorOf(url);
}

async function mainWorkTree(directory: string, commonDirectory: string, bare: boolean): Promise<string> {
  const common = realpathSync(commonDirectory);
  if (bare) return common;
  if (path.basename(common) === '.git') return path.dirname(common);
  const top = await git(directory, ['rev-parse', '--show-toplevel']);
  return realpathSync(top ?? directory);
}

/** Its trimmed output; undefined where git fails or is not there. */
function git(directory: string, words: readonly string[]): Promise<string | undefined> {
  return new Promise((resolve) => {
    execFile('git', ['-C', directory, ...words], { encoding: 'utf8', timeout: gitWaitMs }, (error, stdout) =>
      resolve(error === null ? stdout.trim() : undefined),
    );
  });
}
