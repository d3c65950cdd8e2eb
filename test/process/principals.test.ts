// Under which name a session registers: step by step, the first that says one.

import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { principalOf, recipientOf } from '../../src/compose/recipient.ts';

let home: string;
let workspace: string;
beforeEach(() => {
  home = realpathSync(mkdtempSync(path.join(tmpdir(), 'pb-')));
  chmodSync(home, 0o700);
  workspace = path.join(home, 'work');
  mkdirSync(workspace);
  mkdirSync(path.join(home, 'hosts'), { mode: 0o700 });
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const env = (declared?: string) => ({
  HOME: home,
  POSTBELL_HOME: home,
  ...(declared !== undefined && { POSTBELL_RECIPIENT: declared }),
});
const configure = (host: string, more: object = {}): void =>
  writeFileSync(
    path.join(home, 'hosts', `${host}.json`),
    JSON.stringify({ version: 1, host, principal_id: `configured-${host}`, ...more }),
    { mode: 0o600 },
  );

it('[SES-019] a declared name, else the config of the host, else one of the session alone; a name that is declared and does not count blocks the config', () => {
  const codex = { workspace };
  // Nothing says one.
  expect(principalOf(env(), 'claude', 's1')).toBe('claude-session-s1');
  expect(principalOf(env(), 'codex', 't1', codex)).toBe('codex-thread-t1');
  for (const host of ['gemini', 'other'] as const) expect(principalOf(env(), host, 's1')).toBe('session-s1');
  // The config of the host.
  configure('claude');
  configure('codex-session', { workspace });
  expect(principalOf(env(), 'claude', 's1')).toBe('configured-claude');
  expect(principalOf(env(), 'codex', 't1', codex)).toBe('configured-codex-session');
  expect(principalOf(env(), 'codex', 't1', { workspace: home })).toBe('codex-thread-t1');
  expect(principalOf(env(), 'codex', 't1')).toBe('codex-thread-t1');
  expect(principalOf(env(), 'gemini', 's1', { configured: 'managed' })).toBe('managed');
  expect(principalOf(env(), 'other', 's1')).toBe('session-s1');
  // A declared name goes before each of them.
  for (const [host, situation] of [
    ['claude', {}],
    ['codex', codex],
    ['gemini', { configured: 'managed' }],
  ] as const)
    expect(principalOf(env('declared'), host, 's1', situation)).toBe('declared');
  // One that does not count is no name, and no config stands in for it.
  for (const declared of ['', '  ', '/path', 'x'.repeat(201)]) {
    expect(principalOf(env(declared), 'claude', 's1')).toBe('claude-session-s1');
    expect(principalOf(env(declared), 'codex', 't1', codex)).toBe('codex-thread-t1');
    expect(principalOf(env(declared), 'gemini', 's1', { configured: 'managed' })).toBe('session-s1');
    expect(recipientOf(env(declared), 'codex', codex).ignored !== undefined).toBe(declared.trim() !== '');
  }
});
