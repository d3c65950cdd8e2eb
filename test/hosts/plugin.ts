import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { runClaude } from './claude.ts';
import type { Env } from './terminal.ts';

/** A command hook in exec form; `timeout` in seconds. */
export interface Hook {
  type: 'command';
  command: string;
  args: string[];
  asyncRewake?: boolean;
  timeout?: number;
}

/** A hook that runs `test/hosts/probe/<script>.mjs` out of the plugin made by `installProbePlugin`. */
export function probeHook(script: 'recorder' | 'waiter', file: string, more: Partial<Hook> = {}): Hook {
  return { type: 'command', command: 'node', args: [`\${CLAUDE_PLUGIN_ROOT}/${script}.mjs`, file], ...more };
}

/**
 * Makes a marketplace `fixture` with one plugin `probe` under `dir` and installs it into the home of `env`. The plugin
 * has the given hooks by event, and an MCP server `echo` whose only tool is `mcp__plugin_probe_echo__echo`.
 * The host runs such a plugin from `dir`, so the folder must outlive the sessions.
 */
export async function installProbePlugin(
  env: Env,
  dir: string,
  hooks: { [event: string]: Hook[] },
): Promise<void> {
  const plugin = path.join(dir, 'probe');
  const json = (file: string, value: unknown) => {
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, JSON.stringify(value, null, 2));
  };
  const about = { name: 'probe', version: '0.0.1', description: 'Probes of the host tests' };
  cpSync(fileURLToPath(new URL('./probe', import.meta.url)), plugin, { recursive: true });
  json(path.join(dir, '.claude-plugin/marketplace.json'), {
    name: 'fixture',
    owner: { name: 'Host tests' },
    plugins: [{ ...about, source: './probe' }],
  });
  json(path.join(plugin, '.claude-plugin/plugin.json'), { ...about, author: { name: 'Host tests' } });
  json(path.join(plugin, '.mcp.json'), {
    mcpServers: { echo: { command: 'node', args: [`\${CLAUDE_PLUGIN_ROOT}/echo-server.mjs`] } },
  });
  json(path.join(plugin, 'hooks/hooks.json'), {
    hooks: Object.fromEntries(Object.entries(hooks).map(([event, list]) => [event, [{ hooks: list }]])),
  });
  for (const args of [
    ['marketplace', 'add', dir],
    ['install', 'probe@fixture'],
  ]) {
    const { code, stdout, stderr } = await runClaude(env, ['plugin', ...args], dir);
    if (code !== 0) throw new Error(`claude plugin ${args.join(' ')} ended with ${code}: ${stdout}${stderr}`);
  }
}
