// `postbell identity`: makes and shows who this account is to others.

import type { CreatedIdentity, IdentityAnswer } from '../../peers/identity.ts';
import { isRefusal, Refusal, type Result } from '../../protocol/errors.ts';
import { harmless } from '../../protocol/json.ts';
import { parseWords } from './arguments.ts';

export interface IdentityCalls {
  show(options: { newDoor: boolean }): Promise<Result<IdentityAnswer>>;
  create(options: { replace: boolean }): Result<CreatedIdentity>;
}

/** @param words after `identity` */
export async function identityCommand(
  words: readonly string[],
  calls: () => Promise<IdentityCalls>,
): Promise<Result<object | string>> {
  const [verb, ...flags] = words;
  if (verb !== 'show' && verb !== 'create')
    return new Refusal('usage', 'identity takes show or create; see postbell identity --help');
  const parsed = parseWords(flags, {}, verb === 'show' ? ['json', 'new-door'] : ['json', 'force'], 0);
  if (isRefusal(parsed)) return parsed;
  const { switched } = parsed;
  const { show, create } = await calls();
  if (verb === 'create') {
    const created = create({ replace: switched.has('force') });
    return isRefusal(created) || switched.has('json') ? created : createdText(created);
  }
  const newDoor = switched.has('new-door');
  const shown = await show({ newDoor });
  return isRefusal(shown) || switched.has('json') ? shown : shownText(shown, newDoor);
}

const createdText = ({ key, fingerprint, path }: CreatedIdentity): string =>
  [
    `Made an identity for this account: ${harmless(path)}`,
    `  key          ${key}`,
    `  fingerprint  ${fingerprint}`,
    'Whoever has that file is this account to others, and can read what was sent to it: keep it where nobody else reads it, and',
    'a copy in a safe place. Next, with POSTBELL_RELAYS set: postbell identity show',
  ].join('\n');

const shownText = ({ key, fingerprint, device, address }: IdentityAnswer, newDoor: boolean): string =>
  [
    ...(newDoor ? ['The door is a new one: addresses given before lead nowhere from now on.'] : []),
    `key          ${key}`,
    `fingerprint  ${fingerprint}`,
    `device       ${device}`,
    `address      ${address ?? 'none: set POSTBELL_RELAYS to the relays of this account, also for its router'}`,
  ].join('\n');
