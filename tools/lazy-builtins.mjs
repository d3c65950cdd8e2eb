// Modules of Node that few runs of a process need are loaded at their first use: `node:child_process` takes 4 ms and
// `node:crypto` 2 ms, of a hook that takes 20.
import { readFileSync, writeFileSync } from 'node:fs';

const required =
  /\b(import_node_(?:child_process|crypto)\d*) = require\("(node:(?:child_process|crypto))"\)/g;

/** Rewrites the bundle `file`; @returns how many imports of it are lazy now. */
export function withLazyBuiltins(file) {
  let count = 0;
  const lazily = (_, name, id) => {
    count += 1;
    return `${name} = new Proxy({}, { get: (_, key) => require("${id}")[key] })`;
  };
  writeFileSync(file, readFileSync(file, 'utf8').replace(required, lazily));
  return count;
}
