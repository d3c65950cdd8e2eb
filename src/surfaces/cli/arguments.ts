// Words and flags of a command, from the same field list that the other surfaces use.

import { parseArgs } from 'node:util';
import { Refusal, type Result } from '../../protocol/errors.ts';
import type { Field, Fields } from '../../protocol/fields.ts';

export interface ParsedWords {
  values: Record<string, unknown>;
  positionals: string[];
}

const flagName = (field: string): string => field.replaceAll('_', '-');

/** The command's flags as field values. Unknown flags, missing values and surplus words are `usage`. */
export function parseWords(
  words: readonly string[],
  fields: Fields,
  switches: readonly string[],
  positionalsMax: number,
): Result<ParsedWords> {
  const options: Record<string, { type: 'string' | 'boolean' }> = {};
  for (const [name, field] of Object.entries(fields))
    options[flagName(name)] = { type: field.kind === 'flag' ? 'boolean' : 'string' };
  for (const name of switches) options[name] = { type: 'boolean' };
  try {
    const { values, positionals } = parseArgs({
      args: [...words],
      options,
      allowPositionals: true,
      strict: true,
    });
    if (positionals.length > positionalsMax) return new Refusal('usage', 'too many words');
    const read: Record<string, unknown> = {};
    for (const [name, field] of Object.entries(fields)) {
      const value = values[flagName(name)];
      if (value !== undefined) read[name] = readValue(field, value);
    }
    for (const name of switches) read[name] = values[name] === true;
    return { values: read, positionals };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code?.startsWith('ERR_PARSE_ARGS'))
      return new Refusal('usage', (message.split('\n')[0] as string).split('. ')[0] as string);
    throw error;
  }
}

/** A number where one is expected; text that is none is left for the field check to refuse. */
function readValue(field: Field, value: unknown): unknown {
  return field.kind === 'integer' && typeof value === 'string' && /^-?\d+$/.test(value)
    ? Number(value)
    : value;
}

/** One line a flag, required ones first. */
export function describeFlags(fields: Fields, stdin: string | undefined): string {
  const given = Object.entries(fields).filter(([name]) => name !== stdin);
  const lines = [
    ...given.filter(([, field]) => field.required),
    ...given.filter(([, field]) => !field.required),
  ].map(([name, field]) => {
    const value =
      field.kind === 'flag'
        ? ''
        : field.kind === 'choice'
          ? ` ${field.choices.join('|')}`
          : field.kind === 'integer'
            ? ' N'
            : ' TEXT';
    const flag = `--${flagName(name)}${value}`;
    return `  ${(field.required ? flag : `[${flag}]`).padEnd(44)} ${field.about}`;
  });
  if (stdin !== undefined)
    lines.push(`  ${`--${flagName(stdin)}-stdin`.padEnd(44)} ${fields[stdin]?.about} (read from stdin)`);
  lines.push(`  ${'[--json]'.padEnd(44)} failures as JSON`);
  return lines.join('\n');
}
