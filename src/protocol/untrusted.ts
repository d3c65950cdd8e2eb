// Text of others where a model reads it. The tags by which agent hosts mark whose words follow must not be opened or closed
// from inside a message: their first character is written as its JSON escape, which changes no value, or, where no escape
// would outlive the host's own writing, as an entity.

import { harmless, isObject, type Json } from './json.ts';

const wrappers = [
  'channel',
  'system',
  'system-reminder',
  'task-notification',
  'tool_use',
  'tool_result',
  'function_calls',
  'function_results',
  'local-command-\\w+',
  'command-\\w+',
  'user-prompt-submit-hook',
  'postbell[\\w-]*',
  'human',
  'user',
  'assistant',
];

/** One run of white space at a time: two side by side would be tried in every division. */
const opening = new RegExp(`<(?=\\s*(?:/\\s*)?(?:antml:)?(?:${wrappers.join('|')})\\b)`, 'gi');

/** A line of text with no such tag in it, and nothing that a terminal obeys. */
export function inertLine(line: string): string {
  return harmless(line).replace(opening, '&lt;');
}

/** Lines as they are, but harmless, and with no such tag in them, not even one that runs over a line's end. */
export function inertLines(lines: readonly string[]): string {
  return lines.map(harmless).join('\n').replace(opening, '&lt;');
}

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '"': '&quot;', '<': '&lt;', '>': '&gt;' };

/** Text that a host may write as an attribute of its own tag: nothing in it ends the value, or the tag. */
export function inertAttribute(text: string): string {
  return harmless(text).replace(/[&"<>]/g, (character) => entities[character] as string);
}

/**
 * What is left as it is where JSON is written anew, and moves a terminal or hides text: C1, bidi marks, line separators,
 * tag characters. Joiners stay, for names of people and emoji hold them.
 */
const unescapedAnew = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\u{e0000}-\u{e007f}]/gu;

/**
 * The value with its texts made so, for a host that writes structured content out anew for its model: no escape outlives
 * that. A tag's `<` is then `&lt;`.
 */
export function inertValue(value: Json): Json {
  if (typeof value === 'string') return value.replace(unescapedAnew, harmless).replace(opening, '&lt;');
  if (Array.isArray(value)) return value.map(inertValue);
  if (!isObject(value)) return value;
  const members = new Map<string, Json>();
  const twins = new Map<string, number>();
  for (const [name, member] of Object.entries(value)) {
    let shown = inertValue(name) as string;
    // Of names that become one, the later ones are numbered.
    for (const plain = shown; members.has(shown); ) {
      const nth = (twins.get(plain) ?? 1) + 1;
      twins.set(plain, nth);
      shown = `${plain}'${nth}`;
    }
    members.set(shown, inertValue(member as Json));
  }
  return Object.fromEntries(members) as Json;
}

/** JSON as one line in which no message can imitate a host, a receipt or another sender. The value is the same. */
export function inertJson(value: unknown): string {
  return harmless(JSON.stringify(value)).replace(opening, '\\u003c');
}
