// What the rules read: the files of a tree, and what they say about it.

import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { type Token, tokenize } from './tidy-scan.ts';

export interface TreeFile {
  /** From the root, with `/`. */
  path: string;
  text: string;
  /** Of a source in TypeScript or JavaScript; empty for anything else. */
  tokens: readonly Token[];
}

export interface Offence {
  file: string;
  line: number;
  rule: string;
  sentence: string;
}

const CODE = /\.[cm]?[jt]sx?$/;
const NOT_WALKED = new Set(['.git', 'node_modules', 'dist']);

/** Every text file that git tracks or would take; without a repository, every text file but what is built. */
export function readTree(root: string): TreeFile[] {
  const paths = existsSync(path.join(root, '.git')) ? gitFiles(root) : walk(root, '');
  return paths.sort().flatMap((name) => {
    const file = path.join(root, name);
    if (!statSync(file, { throwIfNoEntry: false })?.isFile()) return [];
    const text = readFileSync(file, 'utf8');
    return text.includes('\0') ? [] : [treeFile(name, text)];
  });
}

function treeFile(name: string, text: string): TreeFile {
  return { path: name, text, tokens: CODE.test(name) ? tokenize(text) : [] };
}

function gitFiles(root: string): string[] {
  // The suite may run as another user than the one who owns the clone.
  const trusting = ['-c', 'safe.directory=*'];
  const listing = ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--deduplicate'];
  const output = execFileSync('git', [...trusting, ...listing], { cwd: root, encoding: 'utf8' });
  return output.split('\0').filter((name) => name !== '');
}

function walk(root: string, folder: string): string[] {
  return readdirSync(path.join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const name = path.posix.join(folder, entry.name);
    if (entry.isDirectory()) return NOT_WALKED.has(entry.name) ? [] : walk(root, name);
    return entry.isFile() ? [name] : [];
  });
}

export function isCode(file: TreeFile): boolean {
  return CODE.test(file.path);
}

/** Whether a file lies in one of these folders at the root of the tree. */
export function under(file: TreeFile, roots: readonly string[]): boolean {
  return roots.some((root) => file.path.startsWith(`${root}/`));
}
