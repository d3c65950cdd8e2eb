// Layers and vendors: who may import whom, by the table.

import path from 'node:path';
import { type Import, importsOf } from './tidy-scan.ts';
import { bannedExceptIn, bannedModules, type Layer, layers, main } from './tidy-table.ts';
import { isCode, type Offence, type TreeFile, under } from './tidy-tree.ts';

/** Where a source under src/ stands: its layer, and for a folder of siblings which of them it belongs to. */
interface Place {
  layer: string;
  sibling: string;
}

/** The layer of a path under src/, `main` for the entry. */
export function placeOf(file: string): Place {
  const [, layer = '', second = ''] = file.split('/');
  if (/^main\.[jt]s$/.test(layer)) return { layer: 'main', sibling: '' };
  return { layer, sibling: second.replace(/\.[^/]*$/, '') };
}

/** Offences of every import under src/. */
export function checkImports(files: readonly TreeFile[]): Offence[] {
  return files.filter((file) => under(file, ['src']) && isCode(file)).flatMap(checkFile);
}

function checkFile(file: TreeFile): Offence[] {
  const place = placeOf(file.path);
  if (place.layer !== 'main' && !layers[place.layer] && !file.path.endsWith('.d.ts')) {
    return [{ file: file.path, line: 1, rule: 'layers', sentence: 'no row of the table covers this folder' }];
  }
  return importsOf(file.tokens).flatMap((found) => checkImport(file.path, place, found));
}

function checkImport(file: string, place: Place, found: Import): Offence[] {
  const offend = (rule: string, sentence: string) => [{ file, line: found.line, rule, sentence }];
  const { specifier } = found;
  if (specifier === undefined) return offend('layers', 'an import names its module in plain letters');
  if (bannedModules.test(specifier) && place.layer !== bannedExceptIn) {
    return offend('banned', `\`${specifier}\` is imported in ${bannedExceptIn} only`);
  }
  if (!specifier.startsWith('.')) {
    const allowed = vendorsOf(place).some((pattern) => covers(pattern, specifier));
    return allowed ? [] : offend('vendors', `\`${specifier}\` is not allowed in ${nameOf(place)}`);
  }
  const target = path.posix.join(path.posix.dirname(file), specifier);
  const sentence = target.startsWith('src/') ? refusal(place, placeOf(target), found.kind) : 'leaves src/';
  return sentence ? offend('layers', `${nameOf(place)} ${sentence} (\`${specifier}\`)`) : [];
}

function nameOf({ layer, sibling }: Place): string {
  return layers[layer]?.siblings ? `${layer}/${sibling}` : layer;
}

function vendorsOf({ layer, sibling }: Place): readonly string[] {
  const row = layers[layer];
  return [...(row?.vendors ?? []), ...(row?.siblings?.vendors?.[sibling] ?? [])];
}

/** Whether a pattern of the table covers a bare specifier. */
export function covers(pattern: string, specifier: string): boolean {
  if (pattern.endsWith('*')) return specifier.startsWith(pattern.slice(0, -1));
  return specifier === pattern || (specifier.startsWith(`${pattern}/`) && !pattern.startsWith('node:'));
}

/** What is wrong with an import from one place to another, if anything. */
function refusal(from: Place, to: Place, kind: Import['kind']): string | undefined {
  if (from.layer === 'main') return refusalOfMain(to, kind);
  const row = layers[from.layer];
  if (from.layer === to.layer) return row && refusalOfSibling(row, from, to);
  if (!row?.imports.includes(to.layer)) return `may not import ${nameOf(to)}`;
  if (row.typesOnly?.includes(to.layer) && kind !== 'types') return `may import types only of ${nameOf(to)}`;
  return undefined;
}

function refusalOfMain(to: Place, kind: Import['kind']): string | undefined {
  if (main.imports.includes(to.layer) || to.layer === 'main') return undefined;
  if (to.layer === main.loads && kind === 'lazy') return undefined;
  return `may only load ${main.loads}/ by a lazy import(), not import ${nameOf(to)}`;
}

/** What is wrong with an import within one folder, if anything. */
export function refusalOfSibling({ siblings }: Layer, from: Place, to: Place): string | undefined {
  if (!siblings || from.sibling === to.sibling || siblings.shared?.includes(to.sibling)) return undefined;
  return `may not import its sibling ${nameOf(to)}`;
}
