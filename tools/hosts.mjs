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
const claude = { name: 'claude-code', npm: '@anthropic-ai/claude-code' };
/** The tested version, and the oldest that has all that the automatic road needs. */
export const claudeVersions = ['2.1.332', '2.1.197'];
const staleMs = 60 * 60 * 1000;

const cacheDir = () =>
  path.join(process.env.XDG_CACHE_HOME || path.join(homedir(), '.cache'), 'postbell-hosts');
const claudeDir = (version) => path.join(cacheDir(), `${claude.name}-${version}`);

/** The native binary in an installed folder. The package for the wrong C library may lie beside it: `npm` takes by `libc`. */
function binaryIn(dir) {
  const base = path.join(dir, 'node_modules', `${claude.npm}-${process.platform}-${process.arch}`);
  const file = process.platform === 'win32' ? 'claude.exe' : 'claude';
  return [path.join(base, file), path.join(`${base}-musl`, file)].find((candidate) => existsSync(candidate));
}

/** Path of the installed Claude Code binary of that version, or undefined. */
export function claudeBinary(version = claudeVersions[0]) {
  return binaryIn(claudeDir(version));
}

/** The version that the binary in `dir` answers, or undefined where it does not run. */
async function versionIn(dir) {
  const binary = binaryIn(dir);
  if (!binary) return undefined;
  try {
    const { stdout } = await run(binary, ['--version'], { timeout: 60_000 });
    return stdout.trim().split(' ')[0];
  } catch {
    return undefined;
  }
}

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
async function place(made, dir, version) {
  if (existsSync(dir) && (await versionIn(dir)) !== version) {
    await rename(dir, `${made}-broken`).catch(() => {});
    await rm(`${made}-broken`, { recursive: true, force: true });
  }
  try {
    await rename(made, dir);
  } catch (error) {
    if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error;
    if ((await versionIn(dir)) !== version) throw error;
  }
}

/** Installs that version of Claude Code unless it is there; returns the path of its binary. */
export async function installClaude(version) {
  const dir = claudeDir(version);
  if ((await versionIn(dir)) === version) return binaryIn(dir);
  await mkdir(cacheDir(), { recursive: true });
  await sweep();
  const made = await mkdtemp(path.join(cacheDir(), `.${claude.name}-`));
  try {
    await writeFile(path.join(made, 'package.json'), '{ "private": true }\n');
    // The native binary needs no install script; the postinstall only links it under another name.
    const args = ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--prefix', made];
    await run('npm', [...args, `${claude.npm}@${version}`], {
      cwd: made,
      shell: process.platform === 'win32',
    });
    const found = await versionIn(made);
    if (found !== version) throw new Error(`${claude.npm}@${version} answers version ${found ?? 'nothing'}`);
    await place(made, dir, version);
  } finally {
    await rm(made, { recursive: true, force: true });
  }
  return binaryIn(dir);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const version of claudeVersions)
    console.log(`${claude.name} ${version} ${await installClaude(version)}`);
}
