// Pages that name tests, and pages that have to say something: neither may rot.

import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const textOf = (file: string): string =>
  readFileSync(fileURLToPath(new URL(`../${file}`, import.meta.url)), 'utf8');
/** In one line, so that no line break hides a phrase. */
const prose = (file: string): string => textOf(file).replaceAll(/\s+/g, ' ');

/** Every `ROW-1, ROW-2 in `file`` of a page. */
function named(page: string): { row: string; file: string }[] {
  const lists = [...prose(page).matchAll(/((?:[A-Z]+-\d{3}(?:, )?)+) in `(test\/[^`]+)`/g)];
  return lists.flatMap(([, rows, file]) =>
    (rows as string).split(', ').map((row) => ({ row, file: file as string })),
  );
}

/** Rows that a title in that file cites. */
const citedIn = (file: string): Set<string> =>
  new Set(
    [...textOf(file).matchAll(/\[([A-Z]+-\d{3}(?:, [A-Z]+-\d{3})*)\]/g)].flatMap(([, rows]) =>
      (rows as string).split(', '),
    ),
  );

const unfounded = (page: string): string[] =>
  named(page)
    .filter(({ row, file }) => !citedIn(file).has(row))
    .map(({ row, file }) => `${row} in ${file}`);

describe('the index of the suite', () => {
  it('[INB-158] names for each of nine duties a file whose tests cite it', () => {
    expect(unfounded('test/README.md')).toEqual([]);
    const duties = textOf('test/README.md').match(/^- .*$/gm) as string[];
    expect(duties.length).toBeGreaterThanOrEqual(9);
    for (const duty of duties) expect(duty).toMatch(/: [A-Z]+-\d{3}(?:, [A-Z]+-\d{3})* in `test\//);
    for (const word of [
      'one gate',
      'its cursor',
      'append at once',
      'killed while it appends',
      'renewal',
      'bound late',
      'how often a ring is tried',
      'failures that are kept',
      'between different hosts',
    ])
      expect(duties.filter((duty) => duty.includes(word))).toHaveLength(1);
  });

  it('of the threats names tests for each of them but the one that nothing prevents', () => {
    const page = textOf('docs/threat-model.md');
    expect(unfounded('docs/threat-model.md')).toEqual([]);
    const table = [...page.matchAll(/^\| ([^|]+?) +\| /gm)].map(([, who]) => who as string).slice(1);
    const attackers = table.filter((who) => !who.startsWith('-'));
    const attacked = [...page.matchAll(/^- (.+)$/gm)].map(([, who]) => who as string);
    expect(attackers.length).toBeGreaterThan(12);
    expect(attackers.filter((who) => !attacked.includes(who))).toEqual(['whoever steals the key']);
  });

  it('looks where it says', () => {
    expect(citedIn('test/docs.test.ts')).toContain('INB-158');
    expect(readdirSync(fileURLToPath(new URL('.', import.meta.url)))).toContain('docs.test.ts');
  });
});

describe('the guide to pairing', () => {
  it('[PEER-109] says what a peer is, what an account is, that nothing is secret forward, and that a relay sees when', () => {
    const page = prose('docs/pairing.md');
    for (const said of [
      'A peer is a full collaborator',
      'An account is one trust domain',
      'There is no forward secrecy',
      'sees which queue gets how much, and when',
    ])
      expect(page).toContain(said);
    expect(prose('README.md')).toContain('docs/pairing.md');
  });

  it('[PEER-099] says what whoever has the key can do, and what to do then', () => {
    expect(prose('docs/pairing.md')).toContain(
      'There is no forward secrecy: whoever gets the key can open what was recorded before. Then make a new identity, and pair anew.',
    );
    expect(prose('docs/threat-model.md')).toMatch(
      /whoever steals the key +\| write as you, read what was recorded/,
    );
  });
});
