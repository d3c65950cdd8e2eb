// A command in one string as the words that a shell would make of it.

import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isRefusal } from '../../src/protocol/errors.ts';
import { shellWord, splitWords, typedWord } from '../../src/protocol/shell-words.ts';

describe('a command in one string', () => {
  it.each([
    ['gemini --acp', ['gemini', '--acp']],
    ['  a\t b\n', ['a', 'b']],
    [`a 'b c' "d e" f\\ g`, ['a', 'b c', 'd e', 'f g']],
    [`a'b'"c"d`, ['abcd']],
    [`a '' ""`, ['a', '', '']],
    [`a "\\"\\\\\\$\\\`\\n"`, ['a', '"\\$`\\n']],
    [`a '\\'`, ['a', '\\']],
    [
      'a $HOME ~ *.ts $(id) `id` | b; c # d',
      ['a', '$HOME', '~', '*.ts', '$(id)', '`id`', '|', 'b;', 'c', '#', 'd'],
    ],
    ['z\u00fcrich \u{1f600}', ['z\u00fcrich', '\u{1f600}']],
  ])('%j', (text, words) => {
    expect(splitWords(text)).toEqual(words);
  });

  it.each(['', ' ', `a 'b`, 'a "b', 'a \\', `'' a`, '""', 'a\0b', 'a "\\'])('%j is malformed', (text) => {
    const read = splitWords(text);
    expect(isRefusal(read) && read.code).toBe('invalid_request');
  });

  it('is split as the shell does it, and what was quoted comes back', () => {
    const word = fc.string({
      unit: fc.constantFrom('a', ' ', "'", '"', '\\', '$', '`', '\n', '\u00e9', '*'),
    });
    fc.assert(
      fc.property(fc.array(word, { minLength: 1, maxLength: 4 }), (words) => {
        fc.pre(words[0] !== '');
        const text = words.map(shellWord).join(' ');
        expect(splitWords(text)).toEqual(words);
      }),
    );
    const seen = fc.string({
      unit: fc.constantFrom('a', ' ', "'", '\\', '$', '\n', '\u001b', '\u009b', '\u202e', '\u{1f600}'),
    });
    fc.assert(
      fc.property(fc.array(seen, { minLength: 1, maxLength: 4 }), (words) => {
        const typed = words.map(typedWord).join(' ');
        expect(typed).not.toMatch(/[\p{Cc}\p{Cf}]/u);
        const read = execFileSync('bash', ['-c', `printf '%s\\0' ${typed}`], { encoding: 'utf8' });
        expect(read.split('\0').slice(0, -1)).toEqual(words);
      }),
      { numRuns: 50 },
    );
    const text = `x 'a "b' "c\\\\d 'e" f\\ \\'g ""`;
    const said = execFileSync('sh', ['-c', `printf '%s\\0' ${text}`], { encoding: 'utf8' });
    expect(splitWords(text)).toEqual(said.split('\0').slice(0, -1));
  });
});
