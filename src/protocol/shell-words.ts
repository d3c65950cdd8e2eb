// One string as the words of a command, as a shell would split it, and back: quotes and backslash, and nothing expanded.

import { Refusal, type Result } from './errors.ts';
import { harmless } from './json.ts';

const malformed = (why: string): Refusal => new Refusal('invalid_request', `the command ${why}`);

/** Characters that a backslash within double quotes takes the meaning of. */
const escapable = /["\\$`]/;

/** POSIX shell quoting (XCU 2.2), without expansion, operators and comments: a `$` or a `|` is a letter. */
export function splitWords(text: string): Result<string[]> {
  const words: string[] = [];
  let word: string | undefined;
  let quote: '"' | "'" | undefined;
  const letters = Array.from(text);
  for (let at = 0; at < letters.length; at += 1) {
    const letter = letters[at] as string;
    if (letter === '\0') return malformed('holds a NUL');
    if (quote === undefined && /\s/.test(letter)) {
      if (word !== undefined) words.push(word);
      word = undefined;
      continue;
    }
    word ??= '';
    if (letter === quote) quote = undefined;
    else if (quote === undefined && (letter === '"' || letter === "'")) quote = letter;
    else if (letter === '\\' && quote !== "'") {
      const next = letters[at + 1];
      if (next === undefined) return malformed('ends with a backslash');
      word += quote === '"' && !escapable.test(next) ? `\\${next}` : next;
      at += 1;
    } else word += letter;
  }
  if (quote !== undefined) return malformed(`has a ${quote} that nothing closes`);
  if (word !== undefined) words.push(word);
  if (words.length === 0 || words[0] === '') return malformed('names no program');
  return words;
}

/** The text as one word of a shell. */
export const shellWord = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

/** The same for a person to read and copy: with nothing in it that a terminal obeys, as bash, ksh, zsh and POSIX.1-2024 read it. */
export const typedWord = (text: string): string =>
  harmless(text) === text ? shellWord(text) : `$'${Array.from(text, typedLetter).join('')}'`;

function typedLetter(letter: string): string {
  if (letter === "'" || letter === '\\') return `\\${letter}`;
  if (harmless(letter) === letter) return letter;
  return Array.from(
    new TextEncoder().encode(letter),
    (byte) => `\\${byte.toString(8).padStart(3, '0')}`,
  ).join('');
}
