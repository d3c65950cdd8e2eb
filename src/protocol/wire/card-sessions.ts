// The sessions of a card: JSON in one field, an array of flat objects. Members that are not known are passed over, so that a card of
// a newer release is still read.

import { isObject } from '../json.ts';
import { characters, isWellFormed, readName } from '../scope.ts';
import { textOfUtf8, utf8 } from './bytes.ts';
import type { Kind } from './field-kinds.ts';
import { wireLimits } from './limits.ts';
import type { CardSession } from './record.ts';

/** Written as they are on every other surface. */
const names = ['session_id', 'principal', 'project'] as const;
/** May be empty. */
const texts = ['host_kind', 'directory', 'git', 'work_summary', 'bell'] as const;

const isName = (value: unknown): value is string =>
  typeof value === 'string' &&
  value.length <= 2 * wireLimits.cardTextCharactersMax &&
  readName('name', value) === value;

const isText = (value: unknown): value is string =>
  typeof value === 'string' &&
  value.length <= 2 * wireLimits.cardTextCharactersMax &&
  isWellFormed(value) &&
  characters(value) <= wireLimits.cardTextCharactersMax;

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

/** With its members in one order, whatever order they had. */
function cardSession(value: unknown): CardSession | undefined {
  if (!isObject(value)) return undefined;
  const own = (member: string): unknown => (Object.hasOwn(value, member) ? value[member] : undefined);
  const generation = own('generation');
  if (!names.every((member) => isName(own(member))) || !texts.every((member) => isText(own(member))))
    return undefined;
  if (!isCount(generation)) return undefined;
  const words = Object.fromEntries([...names, ...texts].map((member) => [member, own(member)]));
  return { ...words, generation } as CardSession;
}

function parsed(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

export const cardSessions: Kind<readonly CardSession[]> = {
  read(bytes) {
    if (bytes.length > wireLimits.cardSessionsBytesMax) return { refused: 'too_large' };
    const all = parsed(textOfUtf8(bytes));
    if (!Array.isArray(all)) return { refused: 'malformed' };
    if (all.length > wireLimits.cardSessionsMax) return { refused: 'too_large' };
    const sessions = all.map(cardSession);
    return sessions.every((one) => one !== undefined) ? { value: sessions } : { refused: 'malformed' };
  },
  // JSON.stringify escapes a lone surrogate, and `read` refuses it: what is written is read back before it is signed.
  write: (sessions) => utf8(JSON.stringify(sessions.map(({ ...members }) => members))),
};
