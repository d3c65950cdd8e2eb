// Names of people and machines: petnames, which the own operator gave, and names that others claim. Both are short lines without
// anything that hides or moves text. Names that compare equal are one petname; a claimed name that a person would take for a known
// one is marked.

import { characters, isWellFormed } from '../scope.ts';
import { wireLimits } from '../wire/limits.ts';

/**
 * Controls, formats (bidirectional and zero-width marks among them), line ends, whatever is drawn as nothing, and every blank but the
 * plain one: two names that nobody can tell apart would be two petnames.
 */
const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|[^\S ]/u;

export type NameFault =
  | 'blank'
  | 'too_long'
  | 'lone_surrogate'
  | 'unseen_character'
  | 'white_space_around'
  | 'not_nfc'
  | 'reserved';

function lineFault(text: string): NameFault | undefined {
  if (text.trim() === '') return 'blank';
  // Each character has two units at most: a long text is not counted.
  if (text.length > 2 * wireLimits.claimedNameCharactersMax) return 'too_long';
  if (characters(text) > wireLimits.claimedNameCharactersMax) return 'too_long';
  if (!isWellFormed(text)) return 'lone_surrogate';
  if (unseen.test(text)) return 'unseen_character';
  return text.trim() === text ? undefined : 'white_space_around';
}

/** Shown for the own key, so nobody's name. */
export const ownName = 'self';

/** What is wrong with a petname; undefined: it may be given. */
export function checkPetname(text: string): NameFault | undefined {
  return lineFault(text) ?? (foldPetname(text) === ownName ? 'reserved' : undefined);
}

/**
 * What is wrong with a name that somebody claims for himself; undefined: it may be shown, quoted. 64 characters have at most 256
 * bytes.
 */
export function checkClaimedName(text: string): NameFault | undefined {
  return lineFault(text) ?? (text.normalize('NFC') === text ? undefined : 'not_nfc');
}

/** The form in which petnames are compared: Unicode NFC and without case. Two petnames of one form are one. */
export function foldPetname(text: string): string {
  // Small, capital, small: letters with several forms (s and the long s, the two sigmas, sharp s and its capital) come out as one.
  return text.normalize('NFC').toLowerCase().toUpperCase().toLowerCase().normalize('NFC');
}
