// A V8 code cache for a bundle: NAME.cjs becomes a small loader, which compiles NAME.main.cjs from the cache that
// this build made beside it. Another Node than the one that built rejects the cache and compiles as usual.

import { execFileSync } from 'node:child_process';
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/** Loads `file` (CommonJS) by `node:vm`; with `writeTo`, writes what V8 compiled on the way. */
const load = `
const { readFileSync, writeFileSync } = require('node:fs');
const { Script } = require('node:vm');

// V8 believes what it is given: a damaged cache ends the process by a signal. It is kept twice in its file, since comparing the
// two costs less than any sum.
function read(file) {
  try {
    const bytes = readFileSync(file);
    const half = bytes.length / 2;
    return half > 0 && bytes.compare(bytes, half, bytes.length, 0, half) === 0 ? bytes.subarray(0, half) : undefined;
  } catch { return undefined; }
}

function load(file, cacheFile, directory, writeTo) {
  const cachedData = writeTo === undefined ? read(cacheFile) : undefined;
  const source = '(function (exports, require, module, __filename, __dirname) {' + readFileSync(file, 'utf8') + '\\n})';
  const script = new Script(source, { filename: file, ...(cachedData && { cachedData }) });
  const module = { exports: {} };
  script.runInThisContext()(module.exports, require, module, file, directory);
  if (writeTo !== undefined) {
    const made = script.createCachedData();
    writeFileSync(writeTo, Buffer.concat([made, made]));
  }
  return module.exports;
}
`;

const inPlace = (name) =>
  `require('node:path').join(__dirname, '${name}.main.cjs'), require('node:path').join(__dirname, '${name}.main.cache'), __dirname`;

/**
 * @param {string} outdir holds NAME.cjs
 * @param {string} name
 */
export function withCodeCache(outdir, name) {
  const file = (end) => path.join(outdir, `${name}.${end}`);
  renameSync(file('cjs'), file('main.cjs'));
  writeFileSync(file('cjs'), `'use strict';\n${load}\nmodule.exports = load(${inPlace(name)});\n`);
  const maker = file('maker.cjs');
  writeFileSync(maker, `${load}\nload(${inPlace(name)}, ${JSON.stringify(file('main.cache'))});\n`);
  execFileSync(process.execPath, [maker], { stdio: 'inherit' });
  rmSync(maker);
}
