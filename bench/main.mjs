// `npm run bench [-- --quick] [--only N,N] [--json FILE] [--dir DIRECTORY]`: bundles the measurements as the product
// is bundled, into a throw-away directory, and runs them without what would slow the start of every process.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { build } from 'esbuild';
import { settings } from '../tools/build.mjs';

const root = settings.absWorkingDir;
const sqlite = createRequire(import.meta.url).resolve('better-sqlite3');

/** The bundle lies outside the tree, so it names the driver by its path. */
const driverByPath = {
  name: 'driver-by-path',
  setup(b) {
    b.onResolve({ filter: /^better-sqlite3$/ }, () => ({ path: sqlite, external: true }));
  },
};

const directory = mkdtempSync(path.join(tmpdir(), 'postbell-bench-'));
process.on('exit', () => rmSync(directory, { recursive: true, force: true }));
await build({
  ...settings,
  outdir: directory,
  entryPoints: { bench: 'bench/run.ts', 'bare-server': 'bench/bare-server.ts' },
  plugins: [driverByPath],
});
const { NODE_EXTRA_CA_CERTS: _, ...env } = process.env;
const child = spawn(
  process.execPath,
  [path.join(directory, 'bench.cjs'), path.join(root, 'dist', 'postbell.cjs'), ...process.argv.slice(2)],
  { stdio: 'inherit', env },
);
// The measurements end their own processes; this one waits for that.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
child.on('exit', (code) => {
  process.exitCode = code ?? 1;
});
