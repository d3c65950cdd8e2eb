// Shape: names of folders and files, kinds of export, lengths.

import path from 'node:path';
import { countLines, functionsOf, is } from './tidy-scan.ts';
import {
  defaultExportExempt,
  folderNamesBanned,
  functionSizeExempt,
  limits,
  sizeExempt,
  sourceRoots,
} from './tidy-table.ts';
import { isCode, type Offence, type TreeFile, under } from './tidy-tree.ts';

const KEBAB = /^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+(-[a-z0-9]+)*)*$/;

/** Offences of names, exports and lengths in all folders of sources. */
export function checkShape(files: readonly TreeFile[]): Offence[] {
  const sources = files.filter((file) => under(file, sourceRoots));
  const code = sources.filter((file) => isCode(file) || file.path.endsWith('.sql'));
  return [
    ...sources.flatMap(checkFolders),
    ...code.flatMap((file) => [...checkName(file), ...checkExports(file), ...checkLengths(file)]),
  ];
}

/** Files that are long, but not yet too long. */
export function noteLengths(files: readonly TreeFile[]): Offence[] {
  return files
    .filter((file) => under(file, sourceRoots) && isCode(file) && !exempt(file, sizeExempt))
    .filter((file) => fileLines(file) > limits.fileLinesNote && fileLines(file) <= limits.fileLinesMax)
    .map((file) => at(file, 1, 'lines', `${fileLines(file)} lines; at ${limits.fileLinesNote} ask why`));
}

function at(file: TreeFile, line: number, rule: string, sentence: string): Offence {
  return { file: file.path, line, rule, sentence };
}

function exempt(file: TreeFile, patterns: readonly RegExp[]): boolean {
  return patterns.some((pattern) => pattern.test(file.path));
}

function checkFolders(file: TreeFile): Offence[] {
  const folders = path.posix.dirname(file.path).split('/');
  return folders
    .filter((folder) => folderNamesBanned.includes(folder))
    .map((folder) =>
      at(file, 1, 'names', `folder \`${folder}\` names a technique, not a part of the product`),
    );
}

function checkName(file: TreeFile): Offence[] {
  const name = path.posix.basename(file.path);
  return KEBAB.test(name) ? [] : [at(file, 1, 'names', `\`${name}\` is not kebab-case`)];
}

function checkExports(file: TreeFile): Offence[] {
  const { tokens } = file;
  const mayDefault = exempt(file, defaultExportExempt);
  return tokens.flatMap((token, i) => {
    const isDefault = is(tokens, i, 'default') && (is(tokens, i - 1, 'export') || is(tokens, i - 1, 'as'));
    if (isDefault && !mayDefault) return [at(file, token.line, 'exports', 'export by name, not by default')];
    const afterExport =
      is(tokens, i - 1, 'export') || (is(tokens, i - 1, 'type') && is(tokens, i - 2, 'export'));
    if (!is(tokens, i, '*') || !afterExport) return [];
    return [at(file, token.line, 'exports', 'name what is exported instead of `export *`')];
  });
}

function checkLengths(file: TreeFile): Offence[] {
  if (exempt(file, sizeExempt)) return [];
  const lines = fileLines(file);
  const tooLong = `${lines} lines; a file has at most ${limits.fileLinesMax}`;
  return [
    ...(lines > limits.fileLinesMax ? [at(file, 1, 'lines', tooLong)] : []),
    ...(exempt(file, functionSizeExempt) ? [] : checkFunctions(file)),
  ];
}

function checkFunctions(file: TreeFile): Offence[] {
  return functionsOf(file.tokens)
    .filter(({ lines }) => lines > limits.functionLinesMax)
    .map(({ line, lines }) =>
      at(file, line, 'lines', `a function of ${lines} lines; one has at most ${limits.functionLinesMax}`),
    );
}

function fileLines(file: TreeFile): number {
  return countLines(file.text) + (file.text.endsWith('\n') ? 0 : 1);
}
