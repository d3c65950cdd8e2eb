// Scope identifiers: who an inbox belongs to. Every read and write passes here, so that one spelling
// reaches one inbox: NFC and trimmed, otherwise compared exactly.

import { Refusal, type Result } from './errors.ts';
import { limits } from './limits.ts';

const loneSurrogate = /\p{Surrogate}/u;
const pathShaped = /^(?:\/|[A-Za-z]:[\\/]|\\\\)/;
const controlCharacter = /\p{Cc}/u;

/** Whether the text can be stored as UTF-8 without loss. */
export function isWellFormed(text: string): boolean {
  return !loneSurrogate.test(text);
}

/** Number of Unicode code points. */
export function characters(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

/** The one form in which a name is stored and compared: Unicode NFC, without white space around it. */
export const nameOf = (text: string): string => text.normalize('NFC').trim();

/**
 * A project, recipient, principal or intended session, normalised.
 * Refuses blank, over 200 characters, lone surrogates (`invalid_request`) and absolute file paths
 * (`path_shaped_identifier`).
 */
export function readName(field: string, value: string): Result<string> {
  if (!isWellFormed(value))
    return new Refusal('invalid_request', `${field} holds a lone surrogate`, { field });
  // Far more than any form of 200 characters has: what nobody can mean is not normalised.
  if (value.trim().length > 20 * limits.nameCharactersMax)
    return new Refusal('invalid_request', `${field} has more than ${limits.nameCharactersMax} characters`, {
      field,
    });
  const name = nameOf(value);
  const length = characters(name);
  if (length === 0) return new Refusal('invalid_request', `${field} is blank`, { field });
  if (length > limits.nameCharactersMax)
    return new Refusal(
      'invalid_request',
      `${field} has ${length} characters; at most ${limits.nameCharactersMax}`,
      { field },
    );
  if (pathShaped.test(name))
    return new Refusal(
      'path_shaped_identifier',
      `${field} looks like a file path; a valid value is ${field === 'project' ? '"shop"' : '"reviewer"'}`,
      { field },
    );
  return name;
}

/** The rule of `isSessionId`, for whoever wrote one that is not. */
export const sessionIdRule = `a session id has 1 to ${limits.sessionIdCharactersMax} characters in Unicode NFC, no control characters, no white space around it, and is no absolute path`;

/**
 * Whether a host's session id may be used as one: 1 to 128 characters without control characters, and written as a
 * recipient is stored (NFC, trimmed, no absolute path), so that mail addressed to it finds it.
 */
export function isSessionId(value: string): boolean {
  const length = characters(value);
  return (
    length >= 1 &&
    length <= limits.sessionIdCharactersMax &&
    isWellFormed(value) &&
    nameOf(value) === value &&
    !pathShaped.test(value) &&
    !controlCharacter.test(value)
  );
}

/** The session that a session-scoped principal would belong to; undefined for any other name. */
export function sessionOfScopedPrincipal(principal: string): string | undefined {
  return /^(?:claude-session|codex-thread|session)-(.+)$/s.exec(principal)?.[1];
}

/** The principal of a session that nobody gave another one. `host` is the host kind of its registration. */
export function sessionScopedPrincipal(host: string, sessionId: string): string {
  if (host === 'claude') return `claude-session-${sessionId}`;
  if (host === 'codex') return `codex-thread-${sessionId}`;
  return `session-${sessionId}`;
}

export type NameFault = 'path-shaped' | 'not NFC' | 'untrimmed';

/** Which of today's rules a stored identifier breaks: one that an earlier release took. */
export function nameFaults(stored: string): NameFault[] {
  const faults: NameFault[] = [];
  if (pathShaped.test(stored.trim())) faults.push('path-shaped');
  if (stored.normalize('NFC') !== stored) faults.push('not NFC');
  if (stored.trim() !== stored) faults.push('untrimmed');
  return faults;
}
