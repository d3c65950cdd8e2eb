// The automatic project id over real repositories, made by git itself.

import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { sha256Hex } from '../../src/crypto/hash.ts';
import { projectIdentity } from '../../src/platform/project.ts';
import { projectId } from '../../src/protocol/project.ts';
import { answer, postbell } from './postbell.ts';

let dir: string;
beforeEach(() => {
  dir = realpathSync(mkdtempSync(path.join(tmpdir(), 'proj-')));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const identity = [
  '-c',
  'user.name=t',
  '-c',
  'user.email=t@example.org',
  '-c',
  'protocol.file.allow=always',
  '-c',
  'init.defaultBranch=main',
];
const git = (cwd: string, ...words: string[]): string =>
  execFileSync('git', [...identity, ...words], { cwd, encoding: 'utf8', stdio: 'pipe' });
const id = async (directory: string): Promise<string> =>
  projectId(await projectIdentity(directory), sha256Hex);

function repository(name: string, remote?: string): string {
  const place = path.join(dir, name);
  mkdirSync(place, { recursive: true });
  git(place, 'init', '-q');
  writeFileSync(path.join(place, 'file'), name);
  git(place, 'add', '.');
  git(place, 'commit', '-qm', 'first');
  if (remote !== undefined) git(place, 'remote', 'add', 'origin', remote);
  return place;
}

describe('the project of a directory', () => {
  it('[SES-012] is one across sub-directories, symlinks, clones of a remote and worktrees; a submodule is its own', async () => {
    const remote = 'https://git.example.org/team/shop.git';
    const main = repository('shop', remote);
    const expected = await id(main);
    mkdirSync(path.join(main, 'deep', 'down'), { recursive: true });
    expect(await id(path.join(main, 'deep', 'down'))).toBe(expected);
    symlinkSync(main, path.join(dir, 'link'));
    expect(await id(path.join(dir, 'link'))).toBe(expected);
    git(main, 'worktree', 'add', '-q', path.join(dir, 'tree'));
    expect(await id(path.join(dir, 'tree'))).toBe(expected);
    expect(await id(repository('elsewhere/clone', remote))).toBe(expected);

    const alone = repository('alone');
    const tree = path.join(dir, 'alone-tree');
    git(alone, 'worktree', 'add', '-q', tree);
    expect(await id(tree)).toBe(await id(alone));

    git(main, 'submodule', '--quiet', 'add', alone, 'sub');
    expect(await id(path.join(main, 'sub'))).not.toBe(expected);
    expect(await id(path.join(main, 'sub'))).not.toBe(await id(alone));
  });

  it('[SES-007] differs by path without a remote, and does not with one', async () => {
    expect(await id(repository('a/one'))).not.toBe(await id(repository('b/one')));
    const remote = 'git@host.example.org:team/one.git';
    expect(await id(repository('c/one', remote))).toBe(await id(repository('d/one', remote)));
    const bare = path.join(dir, 'bare.git');
    git(dir, 'init', '-q', '--bare', bare);
    expect(await projectIdentity(bare)).toEqual({ kind: 'path', path: bare });
    mkdirSync(path.join(dir, 'plain'));
    expect(await projectIdentity(path.join(dir, 'plain'))).toEqual({
      kind: 'path',
      path: path.join(dir, 'plain'),
    });
  });

  it('[SES-008] takes origin, else the only remote, with rewrites applied; a local path is no network remote', async () => {
    const place = repository('remotes', 'https://git.example.org/a/origin.git');
    git(place, 'remote', 'add', 'other', 'https://git.example.org/a/other.git');
    expect(await projectIdentity(place)).toEqual({
      kind: 'git',
      locator: 'https://git.example.org/a/origin',
    });
    git(place, 'remote', 'remove', 'origin');
    expect(await projectIdentity(place)).toEqual({ kind: 'git', locator: 'https://git.example.org/a/other' });
    git(place, 'remote', 'add', 'third', 'https://git.example.org/a/third.git');
    expect(await projectIdentity(place)).toEqual({ kind: 'path', path: place });
    git(place, 'remote', 'remove', 'third');
    git(place, 'config', 'url.https://mirror.example.org/.insteadOf', 'https://git.example.org/');
    expect(await projectIdentity(place)).toEqual({
      kind: 'git',
      locator: 'https://mirror.example.org/a/other',
    });
    for (const local of [dir, `file://${dir}/x.git`, '../relative']) {
      git(place, 'remote', 'set-url', 'other', local);
      expect(await projectIdentity(place)).toEqual({ kind: 'path', path: place });
    }
  });

  it('[SES-013] keeps two unrelated directories of one name apart', async () => {
    const [one, two] = [path.join(dir, 'x', 'shared'), path.join(dir, 'y', 'shared')];
    for (const place of [one, two]) mkdirSync(place, { recursive: true });
    const env = { PATH: process.env.PATH as string, HOME: dir };
    await answer(env, one, ['send', 'alice', '--json'], 'for x');
    expect(await answer(env, two, ['inbox', 'receive', '--recipient', 'alice'])).toMatchObject({
      messages: [],
    });
    expect((await answer(env, one, ['inbox', 'receive', '--recipient', 'alice'])).messages).toHaveLength(1);
    expect((await postbell(env, two, ['inbox', 'receive', '--recipient', 'alice'])).stdout).not.toContain(
      'for x',
    );
  });
});
