// What `claude plugin install` takes: the manifest says what the host will start, and how.

import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { root } from './process/postbell.ts';

const plugin = path.join(root, 'plugins', 'claude-code');
const read = (file: string) => JSON.parse(readFileSync(path.join(plugin, file), 'utf8'));

interface Handler {
  type: string;
  command: string;
  args: string[];
  timeout: number;
  async?: boolean;
  asyncRewake?: boolean;
}

const hooks = read('hooks/hooks.json').hooks as Record<string, { hooks: Handler[] }[]>;
const handlers = Object.values(hooks).flatMap((groups) => groups.flatMap((group) => group.hooks));

describe('the Claude Code plugin', () => {
  it('holds its manifest, one stdio server, hooks, a skill and a launcher, and nothing else', () => {
    const files = readdirSync(plugin, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => path.relative(plugin, path.join(entry.parentPath ?? entry.path, entry.name)))
      .sort();
    expect(files).toEqual([
      '.claude-plugin/plugin.json',
      '.mcp.json',
      'README.md',
      'hooks/hooks.json',
      'launch.cjs',
      'skills/postbell/SKILL.md',
    ]);
    expect(Object.keys(read('.mcp.json').mcpServers)).toEqual(['postbell']);
  });

  it('has no SessionEnd hook, and every handler is in exec form with an explicit timeout', () => {
    expect(Object.keys(hooks)).toEqual(['SessionStart', 'Stop']);
    for (const handler of handlers) {
      expect(handler).toMatchObject({ type: 'command', command: 'node', timeout: expect.any(Number) });
      expect(handler.args[0]).toBe(['$', '{CLAUDE_PLUGIN_ROOT}/launch.cjs'].join(''));
    }
  });

  it('starts the listener as async and asyncRewake with 3,600 s, at SessionStart and at Stop', () => {
    const listeners = handlers.filter((handler) => handler.args[1] === 'wait');
    expect(listeners).toHaveLength(2);
    for (const listener of listeners)
      expect(listener).toMatchObject({ async: true, asyncRewake: true, timeout: 3_600 });
    for (const event of ['SessionStart', 'Stop'])
      expect(
        hooks[event]?.flatMap((group) => group.hooks).some((handler) => handler.args[1] === 'wait'),
      ).toBe(true);
  });

  it('has one version everywhere', () => {
    const { version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
    const market = JSON.parse(readFileSync(path.join(root, '.claude-plugin', 'marketplace.json'), 'utf8'));
    expect([read('.claude-plugin/plugin.json').version, market.plugins[0].version]).toEqual([
      version,
      version,
    ]);
  });

  it('a launcher that finds no program blocks nothing: a hook ends with 0 and no output, the server with 1 and a line', async () => {
    const lost = mkdtempSync(path.join(tmpdir(), 'lost-'));
    cpSync(plugin, path.join(lost, 'a', 'b'), { recursive: true });
    const launch = (word: string) =>
      new Promise<[number, string, string]>((resolve) => {
        execFile(
          process.execPath,
          [path.join(lost, 'a', 'b', 'launch.cjs'), word],
          { env: { PATH: lost } },
          (error, out, err) => resolve([Number(error?.code ?? 0), out, err]),
        );
      });
    expect(await launch('hook')).toEqual([0, '', '']);
    expect(await launch('wait')).toEqual([0, '', '']);
    expect(await launch('mcp')).toEqual([
      1,
      '',
      'postbell: the program was not found; set POSTBELL_BIN to its dist/postbell.cjs\n',
    ]);
    rmSync(lost, { recursive: true });
  });

  it('teaches the mail in a skill of under 400 tokens, at four characters each', () => {
    const skill = readFileSync(path.join(plugin, 'skills', 'postbell', 'SKILL.md'), 'utf8');
    expect(skill.split('---')[2]?.length).toBeLessThan(1_600);
  });
});
