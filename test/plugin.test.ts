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
  command?: string;
  args?: string[];
  server?: string;
  tool?: string;
  timeout: number;
  async?: boolean;
  asyncRewake?: boolean;
}

const hooks = read('hooks/hooks.json').hooks as Record<string, { matcher?: string; hooks: Handler[] }[]>;
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

  it('[HOST-130] has exactly these handlers, each with a timeout, and none at SessionEnd', () => {
    const table = Object.entries(hooks).flatMap(([event, groups]) =>
      groups.flatMap(({ matcher = '', hooks: list }) =>
        list.map((one) => [
          event,
          matcher,
          one.type === 'mcp_tool' ? `${one.server} ${one.tool}` : (one.args ?? []).slice(1).join(' '),
          one.timeout,
        ]),
      ),
    );
    expect(table).toEqual([
      ['SessionStart', '', 'hook session-start --host claude', 10],
      ['SessionStart', '', 'wait', 3_600],
      ['SessionStart', 'clear', 'plugin:postbell:postbell host_event', 5],
      ['UserPromptSubmit', '', 'hook prompt --host claude', 3],
      ['UserPromptSubmit', '', 'wait', 3_600],
      ['PostToolUse', '', 'plugin:postbell:postbell host_event', 5],
      ['Stop', '', 'hook stop-gate --host claude', 10],
      ['Stop', '', 'wait', 3_600],
    ]);
    for (const handler of handlers.filter(({ type }) => type !== 'mcp_tool')) {
      expect(handler).toMatchObject({ type: 'command', command: 'node' });
      expect(handler.args?.[0]).toBe(['$', '{CLAUDE_PLUGIN_ROOT}/launch.cjs'].join(''));
    }
  });

  it('[HOST-046] starts the listener as async and asyncRewake with 3,600 s, at SessionStart, prompt and Stop; the docs say what else happens', () => {
    const listeners = handlers.filter((handler) => handler.args?.[1] === 'wait');
    expect(listeners).toHaveLength(3);
    for (const listener of listeners)
      expect(listener).toMatchObject({ async: true, asyncRewake: true, timeout: 3_600 });
    const docs = readFileSync(path.join(root, 'docs', 'hosts.md'), 'utf8');
    expect(docs).toMatch(/Without\s+a\s+timeout\s.*600\s+s/s);
  });

  it('declares of the variables only POSTBELL_CHANNELS, and never POSTBELL_RECIPIENT', () => {
    const { env } = read('.mcp.json').mcpServers.postbell;
    expect(env).toEqual({ POSTBELL_CHANNELS: ['$', '{POSTBELL_CHANNELS:-}'].join('') });
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
