// Banned calls: clock, randomness, timers, environment and console are passed in, so that a simulator can own them.

import { placeOf } from './tidy-imports.ts';
import { countLines, is, memberOf, type Token } from './tidy-scan.ts';
import { bannedExceptIn, bannedMembers, bannedWords, sqlTime } from './tidy-table.ts';
import { type Offence, type TreeFile, under } from './tidy-tree.ts';

const GLOBALS = /^(globalThis|global|window|self)$/;

/** Offences of every source and SQL file under src/, but for the folder that may. */
export function checkCalls(files: readonly TreeFile[]): Offence[] {
  return files
    .filter((file) => under(file, ['src']) && placeOf(file.path).layer !== bannedExceptIn)
    .flatMap((file) => (file.path.endsWith('.sql') ? checkSql(file) : checkTokens(file)));
}

function checkTokens(file: TreeFile): Offence[] {
  const { layer } = placeOf(file.path);
  return file.tokens.flatMap((token, i) => {
    if (token.kind === 'string' || token.kind === 'template')
      return sqlOffences(file, token.text, token.line);
    if (token.kind !== 'word') return [];
    const sentence =
      bannedMember(file.tokens, i, layer) ?? bannedDate(file.tokens, i) ?? bannedWord(file.tokens, i, layer);
    return sentence ? [{ file: file.path, line: token.line, rule: 'banned', sentence }] : [];
  });
}

function bannedWord(tokens: readonly Token[], i: number, layer: string): string | undefined {
  const { text } = tokens[i]!;
  const toldAlready = i >= 2 && bannedMember(tokens, i - 2, layer);
  if (toldAlready) return undefined;
  const ban = bannedWords.find(({ word }) => word.test(text));
  if (!ban || (ban.globalOnly && isOtherMember(tokens, i))) return undefined;
  return `\`${text}\`: ${ban.instead}`;
}

/** Whether the name at `i` is read off something that is not the global object. */
function isOtherMember(tokens: readonly Token[], i: number): boolean {
  return is(tokens, i - 1, '.') && !GLOBALS.test(tokens[i - 2]?.text ?? '');
}

function bannedMember(tokens: readonly Token[], i: number, layer: string): string | undefined {
  const object = tokens[i]!.text;
  for (const name of membersRead(tokens, i)) {
    const ban = bannedMembers.find((row) => row.object === object && row.member.test(name));
    if (ban && !ban.allowedIn?.includes(layer)) return `\`${object}.${name}\`: ${ban.instead}`;
  }
  return undefined;
}

/** Names read off the object at `i`: one by `a.b`, several by `const { b, c } = a`. */
function membersRead(tokens: readonly Token[], i: number): string[] {
  const name = memberOf(tokens, i);
  if (name !== undefined) return [name];
  const names: string[] = [];
  if (!is(tokens, i - 1, '=') || !is(tokens, i - 2, '}')) return names;
  for (let j = i - 3; j >= 0 && !is(tokens, j, '{'); j -= 1) names.push(tokens[j]!.text);
  return names;
}

function bannedDate(tokens: readonly Token[], i: number): string | undefined {
  if (!is(tokens, i, 'Date')) return undefined;
  const empty = is(tokens, i + 1, '(') && is(tokens, i + 2, ')');
  const bare = is(tokens, i - 1, 'new') && !is(tokens, i + 1, '(');
  return empty || bare ? '`Date` without an argument: take the time from the clock port' : undefined;
}

function checkSql(file: TreeFile): Offence[] {
  // Comments become blanks of as many lines; strings stay, a comment inside one is none.
  const code = file.text.replace(/'(?:[^']|'')*'|--[^\n]*|\/\*[\s\S]*?\*\//g, (part) =>
    part.startsWith("'") ? part : part.replace(/[^\n]/g, ' '),
  );
  return sqlOffences(file, code, 1);
}

function sqlOffences(file: TreeFile, sql: string, firstLine: number): Offence[] {
  return [...sql.matchAll(sqlTime)].map((found) => ({
    file: file.path,
    line: firstLine + countLines(sql.slice(0, found.index)),
    rule: 'banned',
    sentence: `\`${found[0]}\` in SQL: bind the time as a parameter`,
  }));
}
