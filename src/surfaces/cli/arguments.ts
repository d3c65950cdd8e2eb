// Words and flags of a command, from the same field list that the other surfaces use.

import { parseArgs } from 'node:util';
import { Refusal, type Result } from '../../protocol/errors.ts';
import type { Field, Fields } from '../../protocol/fields.ts';

export interface ParsedWords {
  /** By field. */
  values: Record<string, unknown>;
  /** The switches that were given. */
  switched: ReadonlySet<string>;
  positionals: string[];
}

type Names = Readonly<Record<string, string>>;

const flagName = (field: string, names: Names = {}): string => names[field] ?? field.replaceAll('_', '-');

/** The command's flags as field values. Unknown flags, missing values and surplus words are `usage`. */
export function parseWords(
  words: readonly string[],
  fields: Fields,
  switches: readonly string[],
  positionalsMax: number,
  names?: Names,
): Result<ParsedWords> {
  const options: Record<string, { type: 'string' | 'boolean' }> = {};
  for (const [name, field] of Object.entries(fields))
    options[flagName(name, names)] = { type: field.kind === 'flag' ? 'boolean' : 'string' };
  for (const name of switches) options[name] = { type: 'boolean' };
  try {
    const { values, positionals, tokens } = parseArgs({
      args: [...words],
      options,
      allowPositionals: true,
      strict: true,
      tokens: true,
    });
    const given = tokens.flatMap((token) => (token.kind === 'option' ? [token.name] : []));
    const twice = given.find((name, nth) => given.indexOf(name) < nth);
    if (twice !== undefined) return new Refusal('usage', `--${twice} is given twice`);
    if (positionals.length > positionalsMax) return new Refusal('usage', 'too many words');
    const read: Record<string, unknown> = {};
    for (const [name, field] of Object.entries(fields)) {
      const value = values[flagName(name, names)];
      if (value !== undefined) read[name] = readValue(field, value);
    }
    return { values: read, switched: new Set(switches.filter((name) => values[name] === true)), positionals };
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

/** One row a flag, required ones first. `stdin` is the field that is read from stdin, by the named switch. */
export function describeFlags(
  fields: Fields,
  stdin?: { field: string; switch: string },
  names?: Names,
): string {
  const given = Object.entries(fields).filter(([name]) => name !== stdin?.field);
  const row = ([name, field]: [string, Field]): string => {
    const flag = `--${flagName(name, names)}${placeholder(field)}`;
    return helpRow(field.required ? flag : `[${flag}]`, field.about);
  };
  return [
    ...given.filter(([, field]) => field.required).map(row),
    ...(stdin === undefined
      ? []
      : [helpRow(`--${stdin.switch}`, `from stdin: ${fields[stdin.field]?.about}`)]),
    ...given.filter(([, field]) => !field.required).map(row),
    helpRow('[--json]', 'a failure as JSON'),
  ].join('\n');
}

function placeholder(field: Field): string {
  if (field.kind === 'flag') return '';
  if (field.kind === 'choice') return ` ${field.choices.join('|')}`;
  return field.kind === 'integer' ? ' N' : ' TEXT';
}

const helpColumn = 36;

/** A flag with what it is; the text of a long flag goes to the next line. */
export function helpRow(flag: string, about: string): string {
  const gap =
    flag.length < helpColumn ? ' '.repeat(helpColumn - flag.length) : `\n  ${' '.repeat(helpColumn)}`;
  return `  ${flag}${gap}${about}`;
}
