// The plugin for Codex byte for byte. Codex takes the trust of a person in its hooks away with any changed byte and with each
// version, so that both change only together, and only where the hooks do.

import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** Each version that was given out, and the digest of its tree: a line is added for a new version, and none is changed. */
export const codexTrees: Readonly<Record<string, string>> = {
  '1.0.0': '8f600586525f2e9f1633e0f92f64355ecf555239bde6afb762ca7f49b0dbbd11',
};

/** Of all files in a folder, by their names and bytes. */
export function digestOf(folder: string): string {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(folder, path.join(entry.parentPath ?? entry.path, entry.name)))
    .sort();
  const hash = createHash('sha256');
  for (const file of files) {
    const bytes = readFileSync(path.join(folder, file));
    hash.update(`${file}\0${bytes.length}\0`).update(bytes);
  }
  return hash.digest('hex');
}

/** The version that its manifest says. */
export const versionIn = (folder: string): string =>
  (JSON.parse(readFileSync(path.join(folder, '.codex-plugin', 'plugin.json'), 'utf8')) as { version: string })
    .version;
