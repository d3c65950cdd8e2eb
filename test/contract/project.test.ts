// The automatic project id: one for every spelling of one repository, and no password in it.

import { describe, expect, it } from 'vitest';
import { sha256Hex } from '../../src/crypto/hash.ts';
import { identityString, locatorOf, projectId } from '../../src/protocol/project.ts';

const idOf = (remote: string) => projectId({ kind: 'git', locator: locatorOf(remote) as string }, sha256Hex);

describe('a project id', () => {
  it('[SES-006, SES-014] is a readable label and 32 hex digits of SHA-256 over the identity string', () => {
    const vectors: [Parameters<typeof projectId>[0], string, string][] = [
      [{ kind: 'git', locator: 'github.com/owner/repo' }, 'git:github.com/owner/repo', 'repo'],
      [{ kind: 'git', locator: 'https://git.example/x/y' }, 'git:https://git.example/x/y', 'y'],
      [{ kind: 'git', locator: 'ssh://a@h/~/x' }, 'git:ssh://a@h/~/x', 'x'],
      [{ kind: 'path', path: '/home/alice/shop' }, 'path:/home/alice/shop', 'shop'],
    ];
    for (const [identity, text, label] of vectors) {
      expect(identityString(identity)).toBe(text);
      const id = projectId(identity, sha256Hex);
      expect(id).toBe(`${label}~${sha256Hex(text).slice(0, 32)}`);
      expect(id).toMatch(/^[A-Za-z0-9._-]{1,60}~[0-9a-f]{32}$/);
    }
    expect(vectors.map(([identity]) => projectId(identity, sha256Hex))).toEqual([
      'repo~f192270b9c5c30bcde8fcbfb0d3b5e6e',
      'y~939f029e04a63263b47582e4652f24f0',
      'x~6f0fffb940529abb7a69580716fe071f',
      'shop~327acca93265c5be8009dc2133cfd9bc',
    ]);
  });

  it.each([
    ['/home/alice/my shop', 'my-shop'],
    ['/home/alice/\u{1f426}bird', '-bird'],
    ['/srv/shop.git', 'shop'],
    ['/srv/shop/', 'shop'],
    ['/srv/a:b', 'a-b'],
    [`/srv/${'x'.repeat(200)}`, 'x'.repeat(60)],
    ['/', 'project'],
    ['/srv/.git', 'project'],
    ['C:\\work\\shop', 'shop'],
  ])('[SES-014] has a label of %s', (path, label) => {
    const id = projectId({ kind: 'path', path }, sha256Hex);
    expect(id.split('~')[0]).toBe(label);
    expect(id.split('~')[1]).toBe(sha256Hex(`path:${path}`).slice(0, 32));
  });
});

describe('a remote', () => {
  it('[SES-010] of GitHub has one id in every spelling', () => {
    const spellings = [
      'https://github.com/Owner/Repo',
      'https://x-token:secret@GitHub.com/owner/repo.git',
      'http://github.com/owner/repo/',
      'ssh://git@github.com/owner/repo.git',
      'ssh://git@ssh.github.com:443/owner/repo.git',
      'git@github.com:owner/repo.git',
      'git@ssh.github.com:Owner/Repo',
      'git://github.com/owner/repo.git',
    ];
    expect(new Set(spellings.map(locatorOf))).toEqual(new Set(['github.com/owner/repo']));
    expect(new Set(spellings.map(idOf)).size).toBe(1);
  });

  it.each([
    ['https://git.example/x/y', 'https://git.example/x/y'],
    ['HTTPS://Git.Example:443/x/y.git/', 'https://git.example/x/y'],
    ['http://git.example:80/x/y', 'https://git.example/x/y'],
    ['https://alice:secret@git.example/x/y', 'https://git.example/x/y'],
    ['https://alice@git.example/x/y', 'https://git.example/x/y'],
    ['https://alice:se@cret@git.example/x/y', 'https://git.example/x/y'],
    ['https://git.example:8443/x/y', 'https://git.example:8443/x/y'],
    ['http://git.example:8443/x/y', 'https://git.example:8443/x/y'],
    ['GIT://Git.Example:9418/x/y.git', 'git://git.example/x/y'],
    ['git://alice:secret@git.example/x/y.git', 'git://git.example/x/y'],
    ['https://git.example/X/Y', 'https://git.example/X/Y'],
  ])('[SES-009] %s is %s', (remote, locator) => {
    expect(locatorOf(remote)).toBe(locator);
  });

  it('[SES-009] never keeps a password, in whatever spelling it stands', () => {
    const spellings = [
      'https://alice:secret@git.example/x',
      'https://alice:s@secret@git.example:8443/x',
      'https://alice:p/secret@git.example/x',
      'https://secret@git.example:port/x',
      'ssh://alice:secret@git.example/x',
      'ssh://alice:a@secret@git.example/x',
      'git+ssh://alice:secret@git.example/x',
      'git://alice:secret@git.example',
      'ftp://alice:secret@git.example/x',
    ];
    for (const remote of spellings)
      expect(`${remote} ${locatorOf(remote) ?? ''}`.split(' ')[1]).not.toContain('secret');
  });

  it.each([
    ['a@h:x', 'ssh://a@h/~/x'],
    ['ssh://a@h/~/x', 'ssh://a@h/~/x'],
    ['a@h:~/x.git', 'ssh://a@h/~/x'],
    ['a@h:/x', 'ssh://a@h/x'],
    ['ssh://a@h/x', 'ssh://a@h/x'],
    ['ssh://a@H:22/x/', 'ssh://a@h/x'],
    ['ssh://a@h:2222/x', 'ssh://a@h:2222/x'],
    ['host:x', 'ssh://host/~/x'],
    ['ssh://h/x', 'ssh://h/x'],
    ['b@h:x', 'ssh://b@h/~/x'],
    ['a@[::1]:x', 'ssh://a@[::1]/~/x'],
  ])('[SES-011] %s is %s', (remote, locator) => {
    expect(locatorOf(remote)).toBe(locator);
  });

  it.each([
    'file:///srv/x.git',
    '/srv/x.git',
    './x',
    '../x:y',
    'C:\\src\\x',
    'C:/src/x',
    'x',
    '',
    'ftp://h/x',
  ])('[SES-008] that is no network remote has no locator: %s', (remote) => {
    expect(locatorOf(remote)).toBeUndefined();
  });
});
