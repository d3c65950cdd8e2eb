// An esbuild plugin: the JavaScript of the SQLite driver goes into each bundle, since loading its dozen small files costs
// a quarter of a bare node start; only its native binary is loaded from the installed package. Where another version is
// installed than the one that was bundled (npm may pick a newer major on a newer Node), the whole package is loaded.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

const require = createRequire(import.meta.url);
const manifest = require.resolve('better-sqlite3/package.json');
const { version } = JSON.parse(readFileSync(manifest, 'utf8'));

const source = `
const path = require('node:path');
const { existsSync } = require('node:fs');
const manifest = require.resolve('better-sqlite3/package.json');
const binary = path.join(path.dirname(manifest), 'build', 'Release', 'better_sqlite3.node');
const fits = require(manifest).version === ${JSON.stringify(version)} && existsSync(binary);
const Bundled = require(${JSON.stringify(path.join(path.dirname(manifest), 'lib', 'database.js'))});
module.exports = fits
  ? function Driver(file, options) { return new Bundled(file, { ...options, nativeBinding: binary }); }
  : require('better-sqlite3');
`;

export const sqliteDriver = {
  name: 'sqlite-driver',
  setup(build) {
    build.onResolve({ filter: /^better-sqlite3$/ }, (args) =>
      args.namespace === 'sqlite-driver'
        ? { path: args.path, external: true }
        : { path: 'driver', namespace: 'sqlite-driver' },
    );
    build.onResolve({ filter: /^better-sqlite3\/package\.json$/ }, (args) => ({
      path: args.path,
      external: true,
    }));
    build.onResolve({ filter: /^bindings$/ }, (args) => ({ path: args.path, external: true }));
    build.onLoad({ filter: /./, namespace: 'sqlite-driver' }, () => ({
      contents: source,
      resolveDir: path.dirname(manifest),
    }));
  },
};
