// The project of a directory, asked of git itself.

import { execFileSync } from 'node:child_process';
import { mkdirSync, realpathSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { projectIdentity } from '../../src/platform/project.ts';
import { temporaryDirectory } from './desk.ts';

let home = '';

const git = (directory: string, ...words: string[]): string =>
  execFileSync('git', ['-C', directory, '-c', 'user.name=a', '-c', 'user.email=a@b', ...words], {
    stdio: 'pipe',
    encoding: 'utf8',
  });

function directory(...parts: string[]): string {
  const made = path.join(home, ...parts);
  mkdirSync(made, { recursive: true });
  return made;
}

function repository(name: string, remotes: Record<string, string> = {}): string {
  const made = directory(name);
  git(made, 'init', '-q');
  for (const [remote, url] of Object.entries(remotes)) git(made, 'remote', 'add', remote, url);
  return made;
}

beforeEach(() => {
  home = realpathSync(temporaryDirectory());
});

describe('a directory', () => {
  it('[SES-007] is known by its network remote, else by its real path', async () => {
    const shop = repository('shop', { origin: 'https://git.example/team/shop.git' });
    const identity = { kind: 'git', locator: 'https://git.example/team/shop' };
    expect(await projectIdentity(shop)).toEqual(identity);
    const moved = repository('elsewhere', { origin: 'http://git.example/team/shop' });
    expect(await projectIdentity(moved)).toEqual(identity);
    const local = repository('local');
    expect(await projectIdentity(directory('local', 'src'))).toEqual({ kind: 'path', path: local });
    const plain = directory('plain', 'deep');
    expect(await projectIdentity(plain)).toEqual({ kind: 'path', path: plain });
    symlinkSync(plain, path.join(home, 'link'));
    expect(await projectIdentity(path.join(home, 'link'))).toEqual({ kind: 'path', path: plain });
    git(local, 'commit', '-q', '--allow-empty', '-m', 'first');
    git(local, 'worktree', 'add', '-q', path.join(home, 'linked'));
    expect(await projectIdentity(path.join(home, 'linked'))).toEqual({ kind: 'path', path: local });
    const bare = directory('bare.git');
    git(bare, 'init', '-q', '--bare');
    expect(await projectIdentity(bare)).toEqual({ kind: 'path', path: bare });
  });

  it('[SES-008] takes origin, else the only remote, else none; git\u2019s own rewrites apply', async () => {
    const kindOf = async (name: string, remotes: Record<string, string>) => {
      const identity = await projectIdentity(repository(name, remotes));
      return identity.kind === 'git' ? identity.locator : 'path';
    };
    const a = 'https://git.example/a';
    const b = 'https://git.example/b';
    expect(await kindOf('r1', { other: b, origin: a })).toBe(a);
    expect(await kindOf('r2', { upstream: b })).toBe(b);
    expect(await kindOf('r3', { one: a, two: b })).toBe('path');
    expect(await kindOf('r4', { origin: 'file:///srv/x.git' })).toBe('path');
    expect(await kindOf('r5', { origin: '/srv/x.git' })).toBe('path');
    expect(await kindOf('r6', { origin: '../x.git' })).toBe('path');
    expect(await kindOf('r8', { origin: '/srv/x.git', other: b })).toBe('path');
    const rewritten = repository('r7', { origin: 'work:team/shop' });
    git(rewritten, 'config', 'url.https://git.example/.insteadOf', 'work:');
    expect(await projectIdentity(rewritten)).toEqual({
      kind: 'git',
      locator: 'https://git.example/team/shop',
    });
  });

  it('[SES-012] of one repository has one identity, but a submodule its own', async () => {
    const identities = async (places: string[]) =>
      new Set((await Promise.all(places.map(projectIdentity))).map((identity) => JSON.stringify(identity)));
    const main = repository('main');
    git(main, 'commit', '-q', '--allow-empty', '-m', 'first');
    git(main, 'worktree', 'add', '-q', path.join(home, 'tree'));
    symlinkSync(main, path.join(home, 'link'));
    const deep = directory('main', 'src', 'deep');
    symlinkSync(deep, path.join(home, 'deep-link'));
    const places = [main, deep, ...['link', 'deep-link', 'tree'].map((name) => path.join(home, name))];
    expect((await identities(places)).size).toBe(1);
    const url = 'https://git.example/team/shop';
    expect(
      (await identities([repository('c1', { origin: url }), repository('c2', { origin: `${url}.git` })]))
        .size,
    ).toBe(1);
    // A bare repository and its worktrees; one whose git directory lies elsewhere, and one of it.
    const bare = path.join(home, 'bare.git');
    git(main, 'clone', '-q', '--bare', main, bare);
    git(bare, 'remote', 'remove', 'origin');
    git(bare, 'worktree', 'add', '-q', '--detach', path.join(home, 'of-bare'));
    expect((await identities([bare, path.join(home, 'of-bare')])).size).toBe(1);
    const apart = directory('apart');
    git(apart, 'init', '-q', '--separate-git-dir', path.join(home, 'apart-git'));
    git(apart, 'commit', '-q', '--allow-empty', '-m', 'first');
    git(apart, 'worktree', 'add', '-q', '--detach', path.join(home, 'of-apart'));
    expect((await identities([apart, path.join(home, 'of-apart')])).size).toBe(1);
    const part = repository('part');
    git(part, 'commit', '-q', '--allow-empty', '-m', 'first');
    git(main, '-c', 'protocol.file.allow=always', 'submodule', 'add', '-q', part, 'part');
    expect(await projectIdentity(main)).toEqual({ kind: 'path', path: main });
    const submodule = path.join(main, 'part');
    git(submodule, 'remote', 'remove', 'origin');
    git(submodule, 'worktree', 'add', '-q', '--detach', path.join(home, 'of-part'));
    for (const place of [submodule, path.join(home, 'of-part')])
      expect(await projectIdentity(place)).toEqual({ kind: 'path', path: submodule });
  });
});
