// Whom a name means: a petname of the owner's list in any case, an exact key, or `self` for the account's other machines.

import type { Account } from '../ports/account.ts';
import { isRefusal, Refusal, type Result } from '../protocol/errors.ts';
import type { Policy } from '../protocol/policy.ts';

export interface Addressee {
  key: string;
  /** The petname, or `self`. */
  name: string;
  own: boolean;
}

export const noIdentity = (): Refusal =>
  new Refusal('identity_unavailable', 'this account has no identity; make one: postbell identity create');

const isSelf = (name: string): boolean => name.trim().toLowerCase() === 'self';

/** Refusals: `unknown_peer`, and those of the account's files. */
export function addressee(account: Account | undefined, name: string): Result<Addressee> {
  const identity = account?.identity() ?? noIdentity();
  if (isRefusal(identity)) return identity;
  if (isSelf(name) || name === identity.key) return { key: identity.key, name: 'self', own: true };
  const policy = account?.policy() ?? noIdentity();
  if (isRefusal(policy)) return policy;
  const peer = policy.named(name) ?? policy.of(name);
  if (peer === undefined)
    return new Refusal('unknown_peer', `no peer is called ${JSON.stringify(name)}`, { field: 'peer' });
  return { key: peer.key, name: peer.name, own: false };
}

/** Whether anything but pairing may go to that key now. Where the list cannot be read, nobody is trusted until it can. */
export function isTrusted({ account, own }: { account: Account; own: string }, key: string): boolean {
  if (key === own) return true;
  const policy = account.policy();
  return !isRefusal(policy) && policy.of(key) !== undefined;
}

/** How a key is shown: the petname, `self`, or the key itself where it is no peer. */
export function petnameOf(policy: Policy | undefined, ownKey: string | undefined, key: string): string {
  return key === ownKey ? 'self' : (policy?.of(key)?.name ?? key);
}
