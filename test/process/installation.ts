// An installation in a throw-away home, whole: the program on PATH, Claude Code's own files as its commands leave them
// (2.1.332), and a store. Tests break one thing of it.

import { createHash } from 'node:crypto';
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { type Home, makeHome } from './home.ts';
import { answer, type Env, postbell, program, root } from './postbell.ts';

export interface Installation extends Home {
  bin: string;
  data: string;
  claude: string;
}

export interface Row {
  id: string;
  level: 'pass' | 'info' | 'warn' | 'fail';
  text: string;
  hint?: string;
}

export interface Report {
  code: number | null;
  verdict: string;
  rows: Row[];
  row(id: string): Row;
  stderr: string;
}

export const json = (file: string, value: unknown): void => {
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, JSON.stringify(value));
};

export async function makeInstallation({ store = true } = {}): Promise<Installation> {
  const home = makeHome();
  const bin = path.join(home.dir, 'bin');
  const claude = path.join(home.dir, '.claude');
  mkdirSync(bin);
  symlinkSync(program, path.join(bin, 'postbell'));
  symlinkSync(process.execPath, path.join(bin, 'node'));
  writeFileSync(path.join(bin, 'claude'), '#!/bin/sh\necho "$*" >> "$HOME/claude.argv"\n');
  chmodSync(path.join(bin, 'claude'), 0o755);
  // A login shell begins with the PATH of the system.
  writeFileSync(path.join(home.dir, '.profile'), 'PATH="$HOME/bin:$PATH"\n');
  Object.assign(home.env, { PATH: `${bin}:/usr/bin:/bin`, SHELL: '/bin/sh' });
  const installation = { ...home, bin, claude, data: home.env.POSTBELL_HOME as string };
  installPlugin(installation, root);
  if (store) await answer(home.env, home.project, ['message', 'poll', '--project', 'p', '--recipient', 'b']);
  return installation;
}

/** As `claude plugin marketplace add MARKET` and `claude plugin install postbell@postbell` leave it. */
export function installPlugin({ claude }: Pick<Installation, 'claude'>, market: string): void {
  const at = (...parts: string[]) => path.join(claude, ...parts);
  json(at('plugins', 'known_marketplaces.json'), {
    postbell: { source: { source: 'directory', path: market }, installLocation: market },
  });
  json(at('plugins', 'installed_plugins.json'), {
    version: 2,
    plugins: {
      'postbell@postbell': [
        {
          scope: 'user',
          installPath: at('plugins', 'cache', 'postbell', 'postbell', '0.1.0'),
          version: '0.1.0',
        },
      ],
    },
  });
  json(at('settings.json'), {
    extraKnownMarketplaces: { postbell: { source: { source: 'directory', path: market } } },
    enabledPlugins: { 'postbell@postbell': true },
  });
}

/** Runs doctor and reads its rows; `plain` without root's power over modes. */
export async function examined(
  { env, project }: Home,
  more: Env = {},
  { cwd = project, plain = false, words = [] as string[] } = {},
): Promise<Report> {
  const asked = await postbell({ ...env, ...more }, cwd, ['doctor', '--json', ...words], '', plain);
  if (!asked.stdout.startsWith('{')) throw new Error(`doctor ended with ${asked.code}: ${asked.stderr}`);
  const { verdict, rows } = JSON.parse(asked.stdout) as { verdict: string; rows: Row[] };
  const row = (id: string): Row => rows.find((one) => one.id === id) as Row;
  return { code: asked.code, stderr: asked.stderr, verdict, rows, row };
}

/** Every file with its mode and its bytes, by path. */
export function snapshot(directory: string): Map<string, string> {
  const names = readdirSync(directory, { recursive: true, encoding: 'utf8' }).sort();
  return new Map(names.map((name) => [name, stateOf(path.join(directory, name))]));
}

function stateOf(file: string): string {
  const stat = lstatSync(file);
  const mode = (stat.mode & 0o7777).toString(8);
  if (stat.isSymbolicLink()) return `${mode} to ${readlinkSync(file)}`;
  if (!stat.isFile()) return mode;
  return `${mode} ${createHash('sha256').update(readFileSync(file)).digest('hex')}`;
}

/** What is new, gone or changed. */
export function changes(before: Map<string, string>, after: Map<string, string>): string[] {
  const all = new Set([...before.keys(), ...after.keys()]);
  return [...all].filter((name) => before.get(name) !== after.get(name)).sort();
}
