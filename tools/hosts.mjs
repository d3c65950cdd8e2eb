// Installs the exact host versions that the host tests run, in a cache outside the work tree.
// A version's folder exists only whole: it is made beside under another name, tried, and then renamed.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const staleMs = 60 * 60 * 1000;
const { platform, arch } = process;
const native = `${platform}-${arch}`;
const exe = platform === 'win32' ? '.exe' : '';
/** As Rust names the targets that Codex is built for. */
const cpu = arch === 'arm64' ? 'aarch64' : 'x86_64';
const target = platform === 'darwin' ? `${cpu}-apple-darwin` : `${cpu}-unknown-linux-musl`;

/**
 * By name: the package, its versions (the tested one first), where its program lies in `node_modules`, and what else is
 * installed beside it. `left`: too large or too slow for every run; installed when named, or by `all`.
 */
export const hosts = {
  'claude-code': {
    npm: '@anthropic-ai/claude-code',
    versions: ['2.1.332', '2.1.197'],
    // The package for the wrong C library may lie beside the right one: npm takes by `libc`.
    program: ['', '-musl'].map((libc) => `@anthropic-ai/claude-code-${native}${libc}/claude${exe}`),
  },
  codex: {
    npm: '@openai/codex',
    versions: ['0.171.0'],
    program: [`@openai/codex-${native}/vendor/${target}/bin/codex${exe}`],
  },
  'gemini-cli': { npm: '@google/gemini-cli', versions: ['0.61.0'], program: ['.bin/gemini'] },
  opencode: {
    npm: 'opencode-ai',
    versions: ['1.18.33'],
    program: ['', '-musl', '-baseline'].map((kind) => `opencode-${native}${kind}/bin/opencode${exe}`),
  },
  'codex-acp': {
    npm: '@agentclientprotocol/codex-acp',
    versions: ['2.6.0'],
    program: ['.bin/codex-acp'],
    left: true,
  },
  'claude-agent-acp': {
    npm: '@agentclientprotocol/claude-agent-acp',
    versions: ['0.101.0'],
    program: ['@agentclientprotocol/claude-agent-acp/dist/index.js'],
    // It asks for a newer Node than the tests run on.
    beside: [`node-${native}@22`],
    left: true,
  },
};

/** @typedef {keyof typeof hosts} HostName */

const cacheDir = () =>
  path.join(process.env.XDG_CACHE_HOME || path.join(homedir(), '.cache'), 'postbell-hosts');
const dirOf = (name, version) => path.join(cacheDir(), `${name}-${version}`);
const programIn = (name, dir) =>
  hosts[name].program
    .map((file) => path.join(dir, 'node_modules', file))
    .find((candidate) => existsSync(candidate));

/** Path of the installed program of that host, or undefined. */
export const hostProgram = (name, version = hosts[name].versions[0]) => programIn(name, dirOf(name, version));

/** The Node that a host brings along, or the one that runs. */
export function hostNode(name) {
  const { beside = [], versions } = hosts[name];
  if (beside.length === 0) return process.execPath;
  return path.join(dirOf(name, versions[0]), 'node_modules', `node-${native}`, 'bin', `node${exe}`);
}

/** The version that the program in `dir` is, or undefined where it does not run. */
async function versionIn(name, dir) {
  const program = programIn(name, dir);
  if (!program) return undefined;
  try {
    // Some agents have no word for it: then what npm installed.
    if (hosts[name].left) return (await packageIn(name, dir)).version;
    const { stdout } = await run(program, ['--version'], { timeout: 60_000 });
    return /\d+\.\d+\.\d+/.exec(stdout)?.[0];
  } catch {
    return undefined;
  }
}

const packageIn = async (name, dir) =>
  (
    await import(`file://${path.join(dir, 'node_modules', hosts[name].npm, 'package.json')}`, {
      with: { type: 'json' },
    })
  ).default;

/** Removes what killed runs left; an install takes seconds, so an hour is certain. */
async function sweep() {
  for (const name of await readdir(cacheDir())) {
    if (!name.startsWith('.')) continue;
    const dir = path.join(cacheDir(), name);
    const made = await stat(dir).catch(() => undefined);
    if (made && Date.now() - made.mtimeMs > staleMs) await rm(dir, { recursive: true, force: true });
  }
}

/** Puts `made` in the place of `dir`. Loses without harm to a run that was faster. */
async function place(name, made, dir, version) {
  if (existsSync(dir) && (await versionIn(name, dir)) !== version) {
    await rename(dir, `${made}-broken`).catch(() => {});
    await rm(`${made}-broken`, { recursive: true, force: true });
  }
  try {
    await rename(made, dir);
  } catch (error) {
    if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error;
    if ((await versionIn(name, dir)) !== version) throw error;
  }
}

/** Installs that version unless it is there; returns the path of its program. */
export async function installHost(name, version) {
  const dir = dirOf(name, version);
  if ((await versionIn(name, dir)) === version) return programIn(name, dir);
  await mkdir(cacheDir(), { recursive: true });
  await sweep();
  const { npm, beside = [] } = hosts[name];
  const made = await mkdtemp(path.join(cacheDir(), `.${name}-`));
  try {
    await writeFile(path.join(made, 'package.json'), '{ "private": true }\n');
    // The native binaries need no install script; a postinstall only links one under another name.
    const args = ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--prefix', made];
    await run('npm', [...args, `${npm}@${version}`, ...beside], { cwd: made, shell: platform === 'win32' });
    const found = await versionIn(name, made);
    if (found !== version) throw new Error(`${npm}@${version} answers version ${found ?? 'nothing'}`);
    await place(name, made, dir, version);
  } finally {
    await rm(made, { recursive: true, force: true });
  }
  return programIn(name, dir);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const words = process.argv.slice(2);
  const wanted = Object.keys(hosts).filter((name) =>
    words.length === 0 ? hosts[name].left !== true : words.includes('all') || words.includes(name),
  );
  for (const name of wanted)
    for (const version of hosts[name].versions)
      console.log(`${name} ${version} ${await installHost(name, version)}`);
}
