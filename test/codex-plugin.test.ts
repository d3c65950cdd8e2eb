// What `codex plugin add` takes: the manifest says what the host starts, and how; the launcher finds the program from its copy.

import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { codexTrees, digestOf, versionIn } from './codex-tree.ts';
import { root } from './process/postbell.ts';

const plugin = path.join(root, 'plugins', 'codex');
const text = (file: string): string => readFileSync(path.join(plugin, file), 'utf8');
const read = (file: string) => JSON.parse(text(file));

interface Handler {
  type: string;
  command?: string;
  server?: string;
  tool?: string;
  timeout: number;
}

describe('the Codex plugin', () => {
  it('holds its manifest, one stdio server, hooks, a skill and a launcher, and nothing else', () => {
    const files = readdirSync(plugin, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => path.relative(plugin, path.join(entry.parentPath ?? entry.path, entry.name)))
      .sort();
    expect(files).toEqual([
      '.codex-plugin/plugin.json',
      '.mcp.json',
      'hooks/hooks.json',
      'launch.cjs',
      'skills/postbell/SKILL.md',
    ]);
    const market = JSON.parse(readFileSync(path.join(root, '.agents/plugins/marketplace.json'), 'utf8'));
    expect([market.name, market.plugins[0].name, market.plugins[0].source.path]).toEqual([
      'postbell',
      'postbell',
      './plugins/codex',
    ]);
  });

  it('has exactly these handlers, each with a timeout', () => {
    const hooks = read('hooks/hooks.json').hooks as Record<string, { matcher?: string; hooks: Handler[] }[]>;
    const table = Object.entries(hooks).flatMap(([event, groups]) =>
      groups.flatMap(({ matcher = '', hooks: list }) =>
        list.map(({ type, command = '', server, tool, timeout }) => [
          event,
          matcher,
          type === 'mcp_tool'
            ? `${server} ${tool}`
            : command.replace(/^node "\$\{PLUGIN_ROOT\}\/launch\.cjs" /, ''),
          timeout,
        ]),
      ),
    );
    expect(table).toEqual([
      ['SessionStart', 'startup|resume', 'hook session-start --host codex', 10],
      ['SessionStart', 'startup|resume', 'hook codex-session --host codex', 10],
      ['SessionStart', 'startup|resume', 'postbell bind_codex_session', 5],
      ['UserPromptSubmit', '', 'postbell bind_codex_session', 5],
      ['UserPromptSubmit', '', 'hook prompt --host codex', 3],
      ['PreToolUse', 'mcp__postbell__.*', 'postbell bind_codex_session', 5],
      ['PostToolUse', '', 'postbell host_event', 5],
      ['Stop', '', 'postbell bind_codex_session', 5],
      ['SessionEnd', '', 'hook codex-session --host codex', 3],
    ]);
  });

  it('is under its version what it was: a changed byte asks for a new version, and so for new trust', () => {
    expect(digestOf(plugin)).toBe(codexTrees[versionIn(plugin)]);
  });

  it('lets every variable of ours through to the server, and the home of Codex', () => {
    const { env_vars, env } = read('.mcp.json').mcpServers.postbell as { env_vars: string[]; env?: object };
    expect(env).toBeUndefined();
    expect(env_vars).toEqual(
      [...env_vars].sort((a, b) => Number(a.startsWith('POSTBELL')) - Number(b.startsWith('POSTBELL')) || 0),
    );
    for (const name of [
      'CODEX_HOME',
      'POSTBELL_HOME',
      'POSTBELL_DB',
      'POSTBELL_BIN',
      'POSTBELL_RECIPIENT',
      'POSTBELL_ROUTER_SOCKET',
    ])
      expect(env_vars).toContain(name);
  });

  it('shares its launcher and its skill with the plugin of Claude Code, byte for byte', () => {
    for (const file of ['launch.cjs', 'skills/postbell/SKILL.md'])
      expect(text(file)).toBe(readFileSync(path.join(root, 'plugins/claude-code', file), 'utf8'));
  });

  it('its launcher finds the program in the folder that Codex took the copy from', () => {
    const home = mkdtempSync(path.join(tmpdir(), 'pb-'));
    const copy = path.join(home, 'plugins/cache/postbell/postbell/1.0.0');
    cpSync(plugin, copy, { recursive: true });
    const source = path.join(home, 'a "folder" of mine');
    mkdirSync(path.join(source, 'dist'), { recursive: true });
    writeFileSync(
      path.join(source, 'dist/postbell.cjs'),
      'process.stdout.write(process.argv.slice(2).join());',
    );
    const launch = (config: string): string => {
      writeFileSync(path.join(home, 'config.toml'), config);
      return execFileSync(process.execPath, [path.join(copy, 'launch.cjs'), 'hook', 'x'], {
        env: { PATH: '/nowhere' },
        encoding: 'utf8',
      });
    };
    const named = (value: string): string =>
      `model = "x"\n[marketplaces.other]\nsource = "/other"\n\n[marketplaces.postbell]\nsource_type = "local"\nsource = ${value}\n\n[features]\n`;
    expect(launch(named(JSON.stringify(source)))).toBe('hook,x');
    expect(launch(named(`'${source}'`))).toBe('hook,x');
    for (const config of [
      '',
      'source = "/x"\n',
      named('"relative"'),
      named('3'),
      '[marketplaces.postbell]\n',
    ])
      expect(launch(config)).toBe('');
    rmSync(home, { recursive: true });
  });
});
