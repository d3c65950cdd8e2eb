// JSON as the mail keeps it. Compact form is what is stored and measured; canonical form is what is hashed.

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** Whether `value` is a JSON object: neither null nor an array. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Compact JSON with the keys of every object in UTF-16 code unit order (the member order of RFC 8785). */
export function canonicalJson(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const members = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key] as Json)}`);
  return `{${members.join(',')}}`;
}

/** A text as it is, anything else as JSON: `String` runs what a value names `toString`, and may throw. */
export const asText = (value: unknown): string =>
  typeof value === 'string' ? value : (JSON.stringify(value) ?? 'undefined');

/** At most the first `charactersMax` characters. */
export const beginningOf = (text: string, charactersMax: number): string =>
  Array.from(text).slice(0, charactersMax).join('');

/** Length in bytes of the UTF-8 encoding; a lone surrogate counts as its replacement character. */
export function utf8Bytes(text: string): number {
  let bytes = 0;
  for (const character of text) {
    const point = character.codePointAt(0) as number;
    bytes += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x1_0000 ? 3 : 4;
  }
  return bytes;
}

/** Controls (C1 too), formats such as bidi marks, and the line separators that JSON leaves as they are. */
const unseen = /[\p{Cc}\p{Cf}\u2028\u2029]/gu;

const escaped = (character: string): string =>
  Array.from(
    { length: character.length },
    (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`,
  ).join('');

/** The text as a JSON string literal that stays on one line and moves nothing in any terminal. */
export function quoted(text: string): string {
  return JSON.stringify(text).replace(unseen, escaped);
}

/** The text as it is, but with nothing in it that a terminal obeys. */
export function harmless(text: string): string {
  return text.replace(unseen, escaped);
}
