// Reads the sources and says what breaks the conventions; test/tidy.test.ts runs it on this repository.
// A rule is a function from the files of a tree to offences; its data stands in tidy-table.ts.

import { checkCalls } from './tidy-calls.ts';
import { checkImports } from './tidy-imports.ts';
import { checkShape, noteLengths } from './tidy-shape.ts';
import { checkCitations, checkTreeText } from './tidy-texts.ts';
import { type Offence, readTree } from './tidy-tree.ts';

export interface Findings {
  offences: Offence[];
  /** Worth a question, not a failure. */
  notes: Offence[];
}

/** What the tree at `root` gets wrong, by its sources and texts; what is built is for `checkBundles`. */
export function tidy(root: string): Findings {
  const files = readTree(root);
  const rules = [checkImports, checkCalls, checkShape, checkCitations, checkTreeText];
  return { offences: rules.flatMap((rule) => rule(files)), notes: noteLengths(files) };
}

/** `file:line rule: sentence`, one a line. */
export function report(offences: readonly Offence[]): string[] {
  return offences.map(({ file, line, rule, sentence }) => `${file}:${line} ${rule}: ${sentence}`);
}
