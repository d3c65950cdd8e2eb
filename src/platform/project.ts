// The project of a directory: by its git remote where it has one, else by its real path. Git itself is asked, so
// that rewrites in its configuration apply.

import { execFile } from 'node:child_process';
import { realpathSync } from 'node:fs';
import path from 'node:path';
import { type Identity, locatorOf } from '../protocol/project.ts';

const gitWaitMs = 2_000;

/** What the directory is known by. One id for every sub-directory, worktree and clone of a remote. */
export async function projectIdentity(directory: string): Promise<Identity> {
  const place = await git(directory, [
    'rev-parse',
    '--is-bare-repository',
    '--path-format=absolute',
    '--git-common-dir',
    '--show-superproject-working-tree',
  ]);
  if (place === undefined) return { kind: 'path', path: realpathSync(directory) };
  const [bare, commonDirectory = directory] = place.split('\n');
  const locator = await remoteLocator(directory);
  if (locator !== undefined) return { kind: 'git', locator };
  return { kind: 'path', path: await mainWorkTree(directory, commonDirectory, bare === 'true') };
}

/** `origin`, else the only remote, else none. */
async function remoteLocator(directory: string): Promise<string | undefined> {
  const names = ((await git(directory, ['remote'])) ?? '').split('\n').filter((name) => name !== '');
  const name = names.includes('origin') ? 'origin' : names.length === 1 ? names[0] : undefined;
  const url = name === undefined ? undefined : await git(directory, ['remote', 'get-url', name]);
  return url === undefined ? undefined : locatorOf(url.split('\n')[0] as string);
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
