// What doctor learns of the account among other machines: its files, and its relays where it is told to ask them.

import { lstatSync } from 'node:fs';
import { systemClock } from '../platform/clock.ts';
import type { Environment } from '../platform/environment.ts';
import { keyFile, policyFile } from '../platform/paths.ts';
import { systemRandom } from '../platform/random.ts';
import { relaysOf } from '../platform/relays.ts';
import type { Identity } from '../ports/account.ts';
import type { Looked } from '../ports/inspection.ts';
import { isRefusal } from '../protocol/errors.ts';
import { isObject } from '../protocol/json.ts';
import type { AccountFacts, LinkStanding } from '../surfaces/doctor/facts.ts';
import { accountIn } from './account.ts';

export async function lookAtAccount(
  environment: Environment,
  options: { probeRelays: boolean },
): Promise<AccountFacts> {
  const account = accountIn(environment);
  const found = account.identity();
  const policy = account.policy();
  const listed = relaysOf(environment);
  const relays: AccountFacts['relays'] = isRefusal(listed)
    ? closed(listed.message)
    : { state: 'found', value: listed };
  const probed =
    options.probeRelays && !isRefusal(found) && !isRefusal(listed) ? await probe(listed, found) : undefined;
  return {
    identity: isThere(keyFile(environment))
      ? isRefusal(found)
        ? closed(found.message)
        : { state: 'found', value: { key: found.key } }
      : missing,
    peers: isThere(policyFile(environment))
      ? isRefusal(policy)
        ? closed(policy.message)
        : { state: 'found', value: policy.peers.length }
      : missing,
    relays,
    ...(probed !== undefined && { probed }),
  };
}

const missing = { state: 'missing' } as const;
const closed = <T>(why: string): Looked<T> => ({ state: 'closed', why });

function isThere(file: string): boolean {
  try {
    lstatSync(file);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOENT';
  }
}

async function probe(
  origins: readonly string[],
  identity: Identity,
): Promise<NonNullable<AccountFacts['probed']>> {
  const { relayClients } = await import('./relays.ts');
  const client = relayClients({ clock: systemClock, random: systemRandom }, origins);
  return Promise.all(
    origins.map(async (origin) => {
      try {
        await client(origin, identity).describe();
        return { origin };
      } catch (error) {
        return { origin, why: (error as Error).message };
      }
    }),
  );
}

/** What the router's `status` says of its relays; undefined where it says nothing that can be read. */
export function linkStandingOf(link: unknown): LinkStanding | undefined {
  if (!isObject(link) || !Array.isArray(link.relays)) return undefined;
  const relays = link.relays.flatMap((one: unknown) => {
    if (!isObject(one) || typeof one.origin !== 'string' || typeof one.since !== 'string') return [];
    const { origin, since, failure, clock } = one;
    return [
      {
        origin,
        since,
        ...(typeof failure === 'string' && { failure }),
        ...(typeof clock === 'string' && { clock }),
      },
    ];
  });
  return { relays, ...(typeof link.why === 'string' && { why: link.why }) };
}
