// Real processes over the same verbs: a small entry of the tests' own, bundled as the product is.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { afterAll } from 'vitest';
import { atEnd } from './desk.ts';

const driver = createRequire(import.meta.url).resolve('better-sqlite3');

const outdir = mkdtempSync(path.join(tmpdir(), 'postbell-'));
afterAll(() => rmSync(outdir, { recursive: true, force: true }));

/** Bundles an entry for the tests of one file; the driver stays where it is installed. */
export async function bundleChild(entry = new URL('child.ts', import.meta.url)): Promise<string> {
  const outfile = path.join(outdir, 'child.cjs');
  await build({
    entryPoints: [fileURLToPath(entry)],
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'cjs',
    loader: { '.sql': 'text' },
    define: { __POSTBELL_VERSION__: JSON.stringify('0.1.0') },
    alias: { 'better-sqlite3': driver },
    external: [driver],
    logLevel: 'warning',
  });
  return outfile;
}

export interface Child {
  process: ChildProcess;
  /** The next line it says. */
  line(): Promise<string>;
  /** Lets it go on. */
  tell(word: string): void;
  ended: Promise<{ code: number | null; stdout: string; stderr: string }>;
}

/** Starts the entry with a verb; what is still running at the end of the test is killed. */
export function start(entry: string, ...words: string[]): Child {
  const child = spawn(process.execPath, [entry, ...words], { stdio: ['pipe', 'pipe', 'pipe'] });
  let stdout = '';
  let stderr = '';
  let taken = 0;
  let onData = (): void => {};
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString('utf8');
    onData();
  });
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString('utf8')));
  const ended = new Promise<{ code: number | null; stdout: string; stderr: string }>((resolve) =>
    child.on('close', (code) => {
      resolve({ code, stdout, stderr });
      onData();
    }),
  );
  atEnd(() => child.kill('SIGKILL'));
  const line = (): Promise<string> =>
    new Promise((resolve, reject) => {
      onData = () => {
        const next = stdout.split('\n').slice(0, -1)[taken];
        if (next !== undefined) {
          taken += 1;
          onData = () => {};
          resolve(next);
        } else if (child.exitCode !== null || child.signalCode !== null)
          reject(new Error(`the child ended: ${stderr}`));
      };
      onData();
    });
  return { process: child, line, tell: (word) => void child.stdin.write(`${word}\n`), ended };
}

/** Starts several at once: each says it is ready, then all go. */
export async function together(entry: string, count: number, ...words: string[]): Promise<string[]> {
  const children = Array.from({ length: count }, () => start(entry, ...words));
  await Promise.all(children.map((child) => child.line()));
  for (const child of children) child.tell('go');
  const results = await Promise.all(children.map((child) => child.ended));
  return results.map(({ code, stdout, stderr }) => {
    const said = stdout.trim().split('\n').at(-1) ?? '';
    if (code !== 0) throw new Error(`a child ended with ${code}: ${stderr}`);
    return said;
  });
}
