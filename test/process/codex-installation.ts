// Codex in a throw-away home, as its own commands leave it (0.171.0), with a program in its place that answers what a test
// says. The package is a copy, so that it holds a plugin for Codex whatever the tree does.

import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type Installation, json, makeInstallation, type Report, type Row } from './installation.ts';
import { type Env, type Finished, finished, root, startOf } from './postbell.ts';

/** Of the plugin, which changes with its hooks and not with the product. */
export const pluginVersion = (
  JSON.parse(readFileSync(path.join(root, 'plugins/codex/.codex-plugin/plugin.json'), 'utf8')) as {
    version: string;
  }
).version;

export interface CodexInstallation extends Installation {
  /** The copy of this package. */
  package: string;
  /** Codex's own directory. */
  codex: string;
  config: string;
  /** The copy of the plugin that Codex runs. */
  copy: string;
}

/** What the program that stands in for Codex says. */
export interface Said {
  version?: string;
  trust?: string;
  /** Hooks that are switched off. */
  off?: number;
  /** Hooks that are left out. */
  lacking?: number;
  how?: 'answers' | 'ends' | 'knows no such method' | 'is silent' | 'finds an error';
}

/** Codex answers by lines; like the real one it writes into its home at each start. */
const fakeCodex = `#!/usr/bin/env node
const { appendFileSync, existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } = require('node:fs');
const path = require('node:path');
const account = process.env.HOME;
const home = process.env.CODEX_HOME ?? path.join(account, '.codex');
const words = process.argv.slice(2);
const at = path.join(account, 'codex.json');
const said = existsSync(at) ? JSON.parse(readFileSync(at, 'utf8')) : {};
const { version = '0.171.0', trust = 'trusted', off = 0, lacking = 0, how = 'answers' } = said;
if (words[0] === 'plugin') appendFileSync(path.join(account, 'codex.argv'), words.join(' ') + '\\n');
if (words[0] !== 'app-server') return;
mkdirSync(path.join(home, 'tmp'), { recursive: true });
writeFileSync(path.join(home, 'state_5.sqlite'), '');
if (how === 'ends') process.exit(3);
const hooks = () => {
  const copies = path.join(home, 'plugins', 'cache', 'postbell', 'postbell');
  const manifest = path.join(copies, readdirSync(copies).at(-1), 'hooks', 'hooks.json');
  const events = existsSync(manifest) ? Object.entries(JSON.parse(readFileSync(manifest, 'utf8')).hooks) : [];
  const named = events.flatMap(([event, groups]) => groups.flatMap((group) => group.hooks.map(() => event)));
  return named.slice(lacking).map((eventName, nth) => ({
    pluginId: 'postbell@postbell', eventName, trustStatus: trust, enabled: nth >= off,
  }));
};
const foreign = { pluginId: 'other@other', eventName: 'stop', trustStatus: 'untrusted', enabled: false };
let text = '';
process.stdin.on('data', (chunk) => {
  const lines = (text + chunk).split('\\n');
  text = lines.pop();
  for (const { id, method } of lines.map((line) => JSON.parse(line))) {
    const answer = (result) => process.stdout.write(JSON.stringify({ id, ...result }) + '\\n');
    if (how === 'is silent' || id === undefined) continue;
    if (method === 'initialize') answer({ result: { userAgent: 'postbell-doctor/' + version + ' (Linux)' } });
    else if (how === 'knows no such method')
      answer({ error: { code: -32600, message: 'Invalid request: unknown variant hooks/list' } });
    else {
      const errors = how === 'finds an error' ? [{ path: 'x', message: 'hooks.json: expected a map\\nat 1' }] : [];
      answer({ result: { data: [{ cwd: '/', hooks: [...hooks(), foreign], warnings: [], errors }] } });
    }
  }
});
process.stdin.on('end', () => process.exit(0));
`;

/** A copy of the package outside of every home, for all scenes of a file. */
export function copiedPackage(): { directory: string; end(): void } {
  const directory = mkdtempSync(path.join(tmpdir(), 'pbp-'));
  copyPackage(directory);
  return { directory, end: () => rmSync(directory, { recursive: true }) };
}

/** The package without its sources. */
function copyPackage(to: string): void {
  for (const part of ['dist', 'plugins', 'package.json', '.claude-plugin', '.agents'])
    cpSync(path.join(root, part), path.join(to, part), { recursive: true });
  symlinkSync(path.join(root, 'node_modules'), path.join(to, 'node_modules'));
}

/** @param fake whether a program stands in for Codex */
export async function makeCodexInstallation(from: string, { fake = true } = {}): Promise<CodexInstallation> {
  const at = await makeInstallation();
  const codex = path.join(at.dir, '.codex');
  const installation = {
    ...at,
    codex,
    package: from,
    config: path.join(codex, 'config.toml'),
    copy: path.join(codex, 'plugins', 'cache', 'postbell', 'postbell', pluginVersion),
  };
  mkdirSync(codex);
  writeFileSync(installation.config, '# mine\nmodel = "x"\n\n[mcp_servers.own]\ncommand = "true"\n');
  if (!fake) return installation;
  writeFileSync(path.join(at.bin, 'codex'), fakeCodex, { mode: 0o755 });
  installCodexPlugin(installation);
  return installation;
}

/** As `codex plugin marketplace add` and `codex plugin add` leave it. */
export function installCodexPlugin({ config, package: from, copy }: CodexInstallation): void {
  const wiring = `
[marketplaces.postbell]
source_type = "local"
source = ${JSON.stringify(from)}

[plugins."postbell@postbell"]
enabled = true
`;
  writeFileSync(config, readFileSync(config, 'utf8') + wiring);
  cpSync(path.join(from, 'plugins', 'codex'), copy, { recursive: true });
}

export const say = (at: CodexInstallation, said: Said): void => json(path.join(at.dir, 'codex.json'), said);

/** Runs the doctor of the copied package. */
export function askDoctor(
  { env, project, package: from }: CodexInstallation,
  words: string[] = [],
  more: Env = {},
  { plain = false } = {},
): Promise<Finished> {
  const program = path.join(from, 'dist', 'postbell.cjs');
  const [file, args] = startOf(['doctor', ...words], plain, program);
  return finished(file, args, { ...env, ...more }, project);
}

/** `plain` without root's power over modes. */
export async function examinedCodex(
  at: CodexInstallation,
  more: Env = {},
  { plain = false } = {},
): Promise<Report> {
  const { code, stdout, stderr } = await askDoctor(at, ['--json'], more, { plain });
  if (!stdout.startsWith('{')) throw new Error(`doctor ended with ${code}: ${stderr}`);
  const { verdict, rows } = JSON.parse(stdout) as { verdict: string; rows: Row[] };
  return { code, verdict, rows, stderr, row: (id) => rows.find((one) => one.id === id) as Row };
}
