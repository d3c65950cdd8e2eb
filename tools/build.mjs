// Bundles the product: one CommonJS file an entry, so that a hook parses one small file and nothing else.
// CommonJS because it starts faster: a hook that opens SQLite takes 1.37x of bare node, as split ES modules 1.83x.
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { withCodeCache } from './code-cache.mjs';
import { withLazyBuiltins } from './lazy-builtins.mjs';
import { sqliteDriver } from './sqlite-driver.mjs';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const { version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));

/** The process entries under src/compose/, by the name of their bundle. */
export const entries = [
  'cli',
  'hook',
  'wait',
  'mcp',
  'host',
  'acp',
  'codex',
  'companion',
  'claude',
  'router',
  'relay',
  'up',
  'demo',
  'doctor',
  'peer',
];

/** In main.ts, `import('./compose/x.ts')` stays a lazy import of the bundle beside it. */
const lazyEntries = {
  name: 'lazy-entries',
  setup(b) {
    b.onResolve({ filter: /^\.\/compose\/[a-z]+\.ts$/ }, (args) => ({
      path: `./${path.basename(args.path, '.ts')}.cjs`,
      external: true,
    }));
  },
};

/** How every bundle is made; the benchmark's too. */
export const settings = {
  absWorkingDir: root,
  bundle: true,
  platform: 'node',
  target: 'node20',
  format: 'cjs',
  outExtension: { '.js': '.cjs' },
  // `import()` becomes `require`: Node's ES module loader costs more than a bare start, and code from a cache has none.
  supported: { 'dynamic-import': false },
  loader: { '.sql': 'text' },
  define: { __POSTBELL_VERSION__: JSON.stringify(version) },
  legalComments: 'none',
  minifySyntax: true,
  logLevel: 'warning',
  metafile: true,
};

/**
 * Bundles into `outdir` and returns esbuild's metafile.
 * @param {string} outdir folder made anew
 * @param {string} as the version it is, for a test of two installed ones
 */
export async function bundle(outdir, as = version) {
  const define = { __POSTBELL_VERSION__: JSON.stringify(as) };
  const common = { ...settings, define, outdir };
  rmSync(outdir, { recursive: true, force: true });
  mkdirSync(outdir, { recursive: true });
  const results = [
    await build({
      ...common,
      entryPoints: { postbell: 'src/main.ts' },
      plugins: [lazyEntries],
      banner: { js: '#!/usr/bin/env node' },
    }),
    await build({
      ...common,
      entryPoints: Object.fromEntries(entries.map((name) => [name, `src/compose/${name}.ts`])),
      plugins: [sqliteDriver],
    }),
  ];
  chmodSync(path.join(outdir, 'postbell.cjs'), 0o755);
  for (const name of entries) {
    const lazy = withLazyBuiltins(path.join(outdir, `${name}.cjs`));
    // Otherwise a bundler that writes imports another way would make every hook slower without a word.
    if (lazy === 0 && ['hook', 'wait'].includes(name)) throw new Error(`${name}: nothing is loaded lazily`);
  }
  // Those whose start somebody waits for: a third of the time to the first answer of mcp, 4 percent of a hook.
  for (const name of ['mcp', 'host', 'cli', 'hook', 'wait']) withCodeCache(outdir, name);
  return { outputs: Object.assign({}, ...results.map((r) => r.metafile.outputs)) };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const meta = await bundle(path.join(root, 'dist'));
  writeFileSync(path.join(root, 'dist', 'meta.json'), JSON.stringify(meta));
}
