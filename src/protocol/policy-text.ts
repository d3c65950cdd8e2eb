// The owner's policy file as text: a JSON object, petname to `{ "key": … }`. It is the whole policy, so anything wrong in it
// rejects all of it: a peer that was misspelt away would be one that the owner believes admitted, or refused.

import { Refusal, type Result } from './errors.ts';
import { isObject, type Json, quoted } from './json.ts';
import { checkPetname, foldPetname, type NameFault } from './names/petname.ts';
import type { Policy, TrustedPeer } from './policy.ts';

/** One petname as it is written, with what its owner wrote beside the key. */
interface Entry {
  name: string;
  value: Json;
  line: number;
}

/** Whether the text is a key that may be used. */
export type IsKey = (text: string) => boolean;

const nameFaults: Readonly<Record<NameFault, string>> = {
  blank: 'is blank',
  too_long: 'has more than 64 characters',
  lone_surrogate: 'holds half of a character',
  unseen_character: 'holds a character that is not seen',
  white_space_around: 'begins or ends with white space',
  not_nfc: 'is not in Unicode NFC',
  reserved: 'is reserved for this account itself',
};

/** Why it cannot be a petname, after its quoted form; undefined: it can. */
export function petnameFault(name: string): string | undefined {
  const fault = checkPetname(name);
  return fault && nameFaults[fault];
}

const wrong = (line: number | undefined, why: string): Refusal =>
  new Refusal('store_unreadable', `${line === undefined ? '' : `line ${line}: `}${why}`);

/** Refusal `store_unreadable`, naming the line and what is to be changed there. */
export function readPolicy(text: string, isKey: IsKey): Result<Policy> {
  const entries = entriesOf(text);
  if (entries instanceof Refusal) return entries;
  const byName = new Map<string, TrustedPeer>();
  const byKey = new Map<string, TrustedPeer>();
  for (const { name, value, line } of entries) {
    const fault = petnameFault(name);
    if (fault !== undefined) return wrong(line, `the name ${quoted(name)} ${fault}; rename it`);
    const folded = foldPetname(name);
    const other = byName.get(folded);
    if (other !== undefined)
      return wrong(line, `${quoted(name)} and ${quoted(other.name)} are one name; remove or rename one`);
    const peer = peerOf(name, value, line, isKey);
    if (peer instanceof Refusal) return peer;
    const twin = byKey.get(peer.key);
    if (twin !== undefined)
      return wrong(line, `${quoted(name)} and ${quoted(twin.name)} have the same key; remove one`);
    byName.set(folded, peer);
    byKey.set(peer.key, peer);
  }
  return {
    peers: [...byName.values()],
    named: (name) => byName.get(foldPetname(name)),
    of: (key) => byKey.get(key),
  };
}

function peerOf(name: string, value: Json, line: number, isKey: IsKey): Result<TrustedPeer> {
  if (!isObject(value)) return wrong(line, `${quoted(name)} must have an object, as { "key": "…" }`);
  const { key, receipts = true } = value;
  if (typeof key !== 'string' || !isKey(key))
    return wrong(
      line,
      `the key of ${quoted(name)} is no public key; put the 43 characters that its owner gave`,
    );
  if (typeof receipts !== 'boolean')
    return wrong(line, `"receipts" of ${quoted(name)} must be true or false`);
  return { name, key, receipts };
}

/** The members of the object in order, each with its line; one that stands twice stands twice. */
function entriesOf(text: string): Result<Entry[]> {
  let whole: Json;
  try {
    whole = JSON.parse(text) as Json;
  } catch (error) {
    const position = Number(/at position (\d+)/.exec((error as Error).message)?.[1] ?? text.length);
    return wrong(lineAt(text, position), 'the text is no JSON here; mend it');
  }
  if (!isObject(whole)) return wrong(1, 'the file must hold one object, as {}');
  return membersOf(text).map(({ name, value, at }) => ({
    name: JSON.parse(name) as string,
    value: JSON.parse(value) as Json,
    line: lineAt(text, at),
  }));
}

const lineAt = (text: string, position: number): number => text.slice(0, position).split('\n').length;

/** A string, or one sign that opens, closes or separates. */
const token = /"(?:[^"\\]|\\.)*"|[{}[\],:]/gs;

/** The outermost members of a text that is known to be one JSON object: name and value as they are written. */
function membersOf(text: string): { name: string; value: string; at: number }[] {
  const members: { name: string; value: string; at: number }[] = [];
  let depth = 0;
  let begun: { name: string; at: number; from?: number } | undefined;
  for (const { 0: sign, index } of text.matchAll(token)) {
    const ends = (sign === ',' && depth === 1) || (sign === '}' && depth === 1);
    if (ends && begun?.from !== undefined)
      members.push({ name: begun.name, value: text.slice(begun.from, index), at: begun.at });
    if (ends) begun = undefined;
    if (sign === '{' || sign === '[') depth += 1;
    else if (sign === '}' || sign === ']') depth -= 1;
    else if (sign === ':' && depth === 1 && begun !== undefined) begun.from ??= index + 1;
    else if (sign.startsWith('"') && depth === 1) begun ??= { name: sign, at: index };
  }
  return members;
}

/** The text with the petname added, what else was written kept. The text is one that `readPolicy` takes. */
export function withPeer(text: string, { name, key }: { name: string; key: string }): string {
  return policyText([...plain(text), [name, { key }]]);
}

/** The text without the petname, which is written exactly so in it. */
export function withoutPeer(text: string, name: string): string {
  return policyText(plain(text).filter(([other]) => other !== name));
}

const plain = (text: string): [string, Json][] =>
  membersOf(text).map(({ name, value }) => [JSON.parse(name) as string, JSON.parse(value) as Json]);

/** Sorted by petname, a member a line at least: what a person reads and what a diff shows. */
function policyText(entries: readonly (readonly [string, Json])[]): string {
  if (entries.length === 0) return emptyPolicy;
  const lines = entries
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(
      ([name, value]) =>
        `  ${JSON.stringify(name)}: ${JSON.stringify(value, null, 2).replaceAll('\n', '\n  ')}`,
    );
  return `{\n${lines.join(',\n')}\n}\n`;
}

export const emptyPolicy = '{}\n';
