// A V8 code cache for a bundle: NAME.cjs becomes a small loader, which compiles NAME.main.cjs from the cache that
// this build made beside it. Another Node than the one that built rejects the cache and compiles as usual.

import { execFileSync } from 'node:child_process';
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/** Loads `file` (CommonJS) by `node:vm`; with `writeTo`, writes what V8 compiled on the way. */
const load = `
const { readFileSync, writeFileSync } = require('node:fs');
const { Script } = require('node:vm');

// V8 believes what it is given: a cache with a page that was never written ends the process by a signal. A sum over a word
// of each 64 bytes stands in its last four.
function sumOf(bytes, length) {
  const words = new Int32Array(bytes.buffer, bytes.byteOffset, length >> 2);
  let sum = length | 0;
  for (let at = 0; at < words.length; at += 16) sum = (Math.imul(sum, 31) + words[at]) | 0;
  return sum;
}

function read(file) {
  try {
    const bytes = readFileSync(file);
    const length = bytes.length - 4;
    return length > 0 && bytes.readInt32LE(length) === sumOf(bytes, length) ? bytes.subarray(0, length) : undefined;
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
    const sum = Buffer.alloc(4);
    sum.writeInt32LE(sumOf(made, made.length));
    writeFileSync(writeTo, Buffer.concat([made, sum]));
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
