// Keys of peers as the owner's names for them. Only mail of other machines costs a look at the owner's list.

import { petnameOf } from '../peers/who.ts';
import { isRefusal } from '../protocol/errors.ts';
import type { Message } from '../protocol/message.ts';
import type { Policy } from '../protocol/policy.ts';
import type { Desk } from './desk.ts';

/** For one answer: names every peer as the list says now, and by its key where it names none. */
export function peerNames({ account }: Pick<Desk, 'account'>): <M extends Message>(message: M) => M {
  let known: { policy: Policy | undefined; own: string | undefined } | undefined;
  const look = () => {
    const policy = account?.policy();
    const identity = account?.identity();
    return {
      policy: isRefusal(policy) ? undefined : policy,
      own: isRefusal(identity) ? undefined : identity?.key,
    };
  };
  const nameOf = (key: string): string => {
    known ??= look();
    return petnameOf(known.policy, known.own, key);
  };
  return (message) => {
    const { peer, origin } = message;
    if (peer === undefined && origin === undefined) return message;
    return {
      ...message,
      ...(peer !== undefined && { peer: nameOf(peer) }),
      ...(origin !== undefined && { origin: { ...origin, peer: nameOf(origin.sender_key) } }),
    };
  };
}
