// Texts beside the code: citations of the specification, words of a developer's machine, what is in the bundles.

import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { covers } from './tidy-imports.ts';
import { countLines } from './tidy-scan.ts';
import { bundles, machineText, treeTextExempt } from './tidy-table.ts';
import { isCode, type Offence, type TreeFile, under } from './tidy-tree.ts';

const ID = '[A-Z]{3,4}-\\d{3}';
const CITATION = new RegExp(`\\[${ID}(?:\\s*[,;]\\s*${ID})*\\]`, 'g');
const ROW = new RegExp(`^\\|\\s*(${ID})\\s*\\|`, 'gm');

/** Citations in strings of the tests, and in test scripts, of rows that the specification does not have. */
export function checkCitations(files: readonly TreeFile[]): Offence[] {
  const pages = files.filter((file) => under(file, ['docs/spec']) && file.path.endsWith('.md'));
  const rows = new Set(pages.flatMap((page) => [...page.text.matchAll(ROW)].map((row) => row[1]!)));
  return files
    .filter((file) => under(file, ['test']))
    .flatMap((file) => citations(file).filter(({ id }) => !rows.has(id)))
    .map(({ file, line, id }) => ({
      file,
      line,
      rule: 'citations',
      sentence: `${id} is no row of docs/spec/`,
    }));
}

function citations(file: TreeFile): { file: string; line: number; id: string }[] {
  const strings = file.tokens.filter(({ kind }) => kind === 'string' || kind === 'template');
  const script = file.path.endsWith('.txt') ? [{ text: file.text, line: 1 }] : [];
  return (isCode(file) ? strings : script).flatMap(({ text, line }) =>
    [...text.matchAll(CITATION)].flatMap((found) => {
      const where = { file: file.path, line: line + countLines(text.slice(0, found.index)) };
      return [...found[0].matchAll(new RegExp(ID, 'g'))].map(([id]) => ({ ...where, id }));
    }),
  );
}

/** Paths of a developer's machine, anywhere in the tree. */
export function checkTreeText(files: readonly TreeFile[]): Offence[] {
  return files
    .filter((file) => !treeTextExempt.includes(file.path))
    .flatMap((file) =>
      file.text.split('\n').flatMap((text, i) => {
        const found = machineText
          .map((pattern) => pattern.exec(text)?.[0])
          .find((word) => word !== undefined);
        const sentence = `\`${found}\` is a path of one developer's machine`;
        return found === undefined ? [] : [{ file: file.path, line: i + 1, rule: 'tree-text', sentence }];
      }),
    );
}

interface Metafile {
  outputs: Record<string, { inputs: Record<string, unknown> }>;
}

const META = 'dist/meta.json';

/** Packages in a bundle that its row of the table does not name. Reads what tools/build.mjs wrote. */
export function checkBundles(root: string): Offence[] {
  const offend = (sentence: string) => [{ file: META, line: 1, rule: 'bundles', sentence }];
  const file = path.join(root, META);
  if (!existsSync(file)) return offend('is missing: run `npm run build` first');
  const meta = JSON.parse(readFileSync(file, 'utf8')) as Metafile;
  return Object.entries(bundles).flatMap(([name, allowed]) => {
    const output = Object.entries(meta.outputs).find(([out]) => path.posix.basename(out) === name)?.[1];
    if (!output) return offend(`has no bundle ${name}`);
    const packages = new Set(Object.keys(output.inputs).flatMap(packageOf));
    const foreign = [...packages].filter((found) => !allowed.some((pattern) => covers(pattern, found)));
    return foreign.flatMap((found) => offend(`${name} contains ${found}`));
  });
}

function packageOf(input: string): string[] {
  const inside = input.split('node_modules/').slice(1).at(-1);
  return inside === undefined ? [] : [inside.split('/', inside.startsWith('@') ? 2 : 1).join('/')];
}
