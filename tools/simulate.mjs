// `npm run simulate [-- [--link] [--seed N] [--steps M] [--nightly MINUTES]]`: bundles the simulator with the product as it is, but
// over simulated sockets, and runs it: one machine, or with `--link` several and the relays between them.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { build } from 'esbuild';
import { settings } from './build.mjs';

const root = settings.absWorkingDir;
const simulation = path.join(root, 'test', 'simulation');
const main = process.argv.includes('--link') ? path.join('link', 'main.ts') : 'main.ts';
const sqlite = createRequire(import.meta.url).resolve('better-sqlite3');

const simulatedOutside = {
  name: 'simulated-outside',
  setup(b) {
    b.onResolve({ filter: /^node:net$/ }, () => ({ path: path.join(simulation, 'net.ts') }));
    b.onResolve({ filter: /\/socket-owner\.ts$/ }, () => ({
      path: path.join(simulation, 'socket-owner.ts'),
    }));
    b.onResolve({ filter: /^better-sqlite3$/ }, () => ({ path: sqlite, external: true }));
  },
};

const directory = mkdtempSync(path.join(tmpdir(), 'postbell-simulate-'));
process.on('exit', () => rmSync(directory, { recursive: true, force: true }));
await build({
  ...settings,
  format: 'esm',
  outExtension: { '.js': '.mjs' },
  outdir: directory,
  entryPoints: { simulate: path.join(simulation, main) },
  sourcemap: 'inline',
  plugins: [simulatedOutside],
});
const child = spawn(
  process.execPath,
  [
    '--enable-source-maps',
    ...process.execArgv,
    path.join(directory, 'simulate.mjs'),
    ...process.argv.slice(2),
  ],
  { stdio: 'inherit' },
);
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
child.on('exit', (code) => {
  process.exitCode = code ?? 1;
});
