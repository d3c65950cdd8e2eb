// Closed field lists. One table of fields drives the CLI flags, the MCP schema and the checks, so that the
// surfaces cannot drift apart. Reading is hand-written: a schema library costs 100 ms of start-up.

import { Refusal, type Result } from './errors.ts';
import { isObject, type Json, quoted } from './json.ts';
import { characters, isWellFormed, readName } from './scope.ts';

interface Common {
  readonly required?: true;
  /** One clause for `--help` and the tool schema. */
  readonly about: string;
}

export type Field = Common &
  (
    | { readonly kind: 'name' }
    | { readonly kind: 'text'; readonly min?: 0; readonly max: number }
    | { readonly kind: 'choice'; readonly choices: readonly string[] }
    | { readonly kind: 'integer'; readonly min: number; readonly max: number }
    | { readonly kind: 'flag' }
    /** A moment as ISO 8601 with zone; read as UTC with milliseconds. */
    | { readonly kind: 'instant' }
    /** Any JSON value; null is a value. */
    | { readonly kind: 'json' }
    /** A list that its use case reads itself. */
    | { readonly kind: 'list' }
  );

export type Fields = Readonly<Record<string, Field>>;

type ValueOf<F extends Field> = F extends { kind: 'integer' }
  ? number
  : F extends { kind: 'flag' }
    ? boolean
    : F extends { kind: 'choice'; choices: readonly (infer C)[] }
      ? C
      : F extends { kind: 'json' }
        ? Json
        : F extends { kind: 'list' }
          ? unknown[]
          : string;

type RequiredKeys<S extends Fields> = {
  [K in keyof S]: S[K] extends { required: true } ? K : never;
}[keyof S];

/** What `readFields` answers: required fields present, the others perhaps. */
export type ValuesOf<S extends Fields> = { [K in RequiredKeys<S>]: ValueOf<S[K]> } & {
  [K in Exclude<keyof S, RequiredKeys<S>>]?: ValueOf<S[K]>;
};

const refuse = (field: string, accepted: string): Refusal =>
  new Refusal('invalid_request', `${field} must be ${accepted}`, { field });

function readText(name: string, value: unknown, min: number, max: number): Result<string> {
  if (typeof value !== 'string') return refuse(name, 'a string');
  if (!isWellFormed(value)) return refuse(name, 'text without lone surrogates');
  const length = characters(value);
  return length >= min && length <= max ? value : refuse(name, `${min} to ${max} characters`);
}

function readInteger(name: string, value: unknown, min: number, max: number): Result<number> {
  const whole = typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max;
  return whole ? value : refuse(name, `a whole number from ${min} to ${max}`);
}

const instantForm = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2})$/;

/** A day that its month does not have would be read as one of the next. */
function isInstant(text: string): boolean {
  const day = text.slice(0, 10);
  const ms = instantForm.test(text) ? Date.parse(day) : Number.NaN;
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(day);
}

function readInstant(name: string, value: unknown): Result<string> {
  const ms = typeof value === 'string' && isInstant(value) ? Date.parse(value) : Number.NaN;
  const text = Number.isNaN(ms) ? '' : new Date(ms).toISOString();
  // Years outside four digits are written otherwise, and stored times are compared as text.
  return /^\d{4}-/.test(text) ? text : refuse(name, 'an ISO 8601 instant with zone, as 2026-03-01T12:00:00Z');
}

function readField(name: string, field: Field, value: unknown): Result<unknown> {
  switch (field.kind) {
    case 'json':
      return value;
    case 'list':
      return Array.isArray(value) ? value : refuse(name, 'a list');
    case 'flag':
      return typeof value === 'boolean' ? value : refuse(name, 'true or false');
    case 'integer':
      return readInteger(name, value, field.min, field.max);
    case 'instant':
      return readInstant(name, value);
    case 'choice':
      return field.choices.includes(value as string)
        ? value
        : refuse(name, `one of ${field.choices.join(', ')}`);
    case 'text':
      return readText(name, value, field.min ?? 1, field.max);
    case 'name':
      return typeof value === 'string' ? readName(name, value) : refuse(name, 'a string');
  }
}

/**
 * Checks `input` against the closed list `fields`. Unknown keys are refused first; then a null counts as absent,
 * except for a JSON field. Nothing inside a JSON value is touched.
 */
export function readFields<S extends Fields>(fields: S, input: unknown): Result<ValuesOf<S>> {
  if (!isObject(input)) return new Refusal('invalid_request', 'the request must be an object');
  const accepted = Object.keys(fields);
  for (const key of Object.keys(input))
    if (!Object.hasOwn(fields, key))
      return new Refusal(
        'invalid_request',
        `unknown field ${quoted(key)}; accepted: ${accepted.join(', ')}`,
        { field: key },
      );
  const given = (name: string): unknown => (Object.hasOwn(input, name) ? input[name] : undefined);
  const isAbsent = (name: string, field: Field): boolean =>
    given(name) === undefined || (given(name) === null && field.kind !== 'json');
  const missing = accepted.filter((name) => fields[name]?.required && isAbsent(name, fields[name]));
  const [first] = missing;
  if (first !== undefined)
    return new Refusal(
      'invalid_request',
      `${missing.join(', ')} ${missing.length === 1 ? 'is' : 'are'} required`,
      { field: first },
    );
  const values: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(fields)) {
    if (isAbsent(name, field)) continue;
    const value = readField(name, field, given(name));
    if (value instanceof Refusal) return value;
    values[name] = value;
  }
  return values as ValuesOf<S>;
}
