// The project of a directory: by its git remote where it has one, else by its real path. Git itself is asked, so
// that rewrites in its configuration apply.

import { execFile } from 'node:child_process';
import { existsSync, realpathSync } from 'node:fs';
import path from 'node:path';
import { Fault } from '../protocol/errors.ts';
import { type Identity, locatorOf } from '../protocol/project.ts';

const gitWaitMs = 5_000;
/** How git ends where it is asked for what there is not. */
const noWorkTree = 128;

/**
 * What the directory is known by. One id for every sub-directory, worktree and clone of a remote.
 * Fault `project_unavailable` where git should know and does not say: a guess would be another project's inbox.
 */
export async function projectIdentity(directory: string): Promise<Identity> {
  const place = realPath(directory);
  if (!insideRepository(place)) return { kind: 'path', path: place };
  // Both at once: a hook waits for this, and each start of git takes a fifth of a bare node's.
  const [found, remotes] = await Promise.all([
    git(place, ['rev-parse', '--is-bare-repository', '--path-format=absolute', '--git-common-dir']),
    git(place, ['remote', '--verbose']),
  ]);
  const [bare, commonDirectory = place] = found.split('\n');
  const locator = remoteLocator(remotes);
  if (locator !== undefined) return { kind: 'git', locator };
  return { kind: 'path', path: await mainWorkTree(commonDirectory, bare === 'true') };
}

function realPath(directory: string): string {
  try {
    return realpathSync(directory);
  } catch (error) {
    throw new Fault('project_unavailable', `the directory cannot be read: ${directory}`, { cause: error });
  }
}

/** Whether a repository begins here or above: a `.git`, or what a bare one holds. */
function insideRepository(place: string): boolean {
  for (let at = place; ; at = path.dirname(at)) {
    if (existsSync(path.join(at, '.git'))) return true;
    if (existsSync(path.join(at, 'HEAD')) && existsSync(path.join(at, 'objects'))) return true;
    if (path.dirname(at) === at) return false;
  }
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

/**
 * The same from each of its worktrees. Where the directory that they share lies elsewhere, it names the main one (as a
 * submodule's does), or else stands for it: a bare repository, or one of `--separate-git-dir`.
 */
async function mainWorkTree(commonDirectory: string, bare: boolean): Promise<string> {
  const common = realpathSync(commonDirectory);
  if (bare) return common;
  if (path.basename(common) === '.git') return path.dirname(common);
  return realpathSync(await namedWorkTree(common));
}

async function namedWorkTree(common: string): Promise<string> {
  try {
    return await git(common, ['rev-parse', '--show-toplevel']);
  } catch (error) {
    if (((error as Fault).cause as { code?: unknown }).code === noWorkTree) return common;
    throw error;
  }
}

/** Variables by which the caller's own git may be pointed at another repository. */
const redirecting = /^GIT_/;

/** Its trimmed output. */
function git(directory: string, words: readonly string[]): Promise<string> {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !redirecting.test(name)));
  return new Promise((resolve, reject) => {
    execFile(
      'git',
      ['-C', directory, ...words],
      { encoding: 'utf8', timeout: gitWaitMs, killSignal: 'SIGKILL', env },
      (error, stdout) => {
        if (error === null) resolve(stdout.trim());
        else
          reject(
            new Fault('project_unavailable', `git does not say what repository ${directory} is`, {
              cause: error,
            }),
          );
      },
    );
  });
}
