// Text of others where a model reads it. The tags by which agent hosts mark whose words follow must not be opened or closed
// from inside a message: their first character is written as its JSON escape, which changes no value.

import { harmless } from './json.ts';

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

const opening = new RegExp(`<(?=\\s*/?\\s*(?:antml:)?(?:${wrappers.join('|')})\\b)`, 'gi');

/** A line of text with no such tag in it, and nothing that a terminal obeys. */
export function inertLine(line: string): string {
  return harmless(line).replace(opening, '&lt;');
}

/** JSON as one line in which no message can imitate a host, a receipt or another sender. The value is the same. */
export function inertJson(value: unknown): string {
  return harmless(JSON.stringify(value)).replace(opening, '\\u003c');
}
