// The ground with the way to the local router: what the use cases of the mail are handed.

import type { Desk } from '../mailbox/desk.ts';
import { type Environment, quotaOf } from '../platform/environment.ts';
import { readPrivateFile } from '../platform/files.ts';
import { checkSocketPath, type Places } from '../platform/paths.ts';
import { lastPromptMs } from '../platform/prompt-marks.ts';
import { relaysOf } from '../platform/relays.ts';
import type { Account } from '../ports/account.ts';
import { Fault, isRefusal } from '../protocol/errors.ts';
import { type RouterAddress, routerCalls } from '../router/calls.ts';
import { accountIn } from './account.ts';
import { type Ground, openGround } from './store.ts';

export interface Local extends Ground {
  address: RouterAddress;
  quota?: number | 'malformed';
  account?: Account;
  link?: NonNullable<Desk['link']>;
  lastPromptMs?: NonNullable<Desk['lastPromptMs']>;
  router: ReturnType<typeof routerCalls>;
  close(): void;
}

export async function openLocal(environment?: Environment): Promise<Local> {
  const ground = await openGround({}, environment);
  const address = routerAddress(ground.places, process.platform);
  const router = routerCalls(address, ground);
  const quota = quotaOf(ground.environment);
  return {
    ...ground,
    ...(quota !== undefined && { quota }),
    account: accountIn(ground.environment),
    link: wayToRelays(ground),
    lastPromptMs: (ids) => lastPromptMs(ground.places, ids),
    address,
    router,
    close: () => {
      router.close();
      ground.store.close();
    },
  };
}

/** A malformed list of relays is none here: whoever carries the mail says so. */
function wayToRelays(ground: Pick<Ground, 'environment' | 'clock' | 'random'>): NonNullable<Desk['link']> {
  const listed = relaysOf(ground.environment);
  const relays = isRefusal(listed) ? [] : listed;
  // Loaded where somebody asks: HTTP costs every other command a tenth of its start.
  return {
    relays,
    client: async (origin, signer) =>
      (await import('./relays.ts')).relayClients(ground, relays)(origin, signer),
  };
}

/** Nobody can be reached at a path that no router could have, nor on a platform that has no router. */
export function routerAddress(places: Places, platform: string): RouterAddress {
  return {
    socketPath: places.routerSocket,
    token: () => {
      if (platform === 'win32') throw new Fault('router_unreachable', 'there is no router on Windows');
      try {
        checkSocketPath(places.routerSocket);
      } catch (error) {
        throw new Fault('router_unreachable', `${(error as Fault).message} (POSTBELL_ROUTER_SOCKET)`, {
          cause: error,
        });
      }
      const token = readPrivateFile(places.routerToken);
      if (token === undefined) throw new Fault('router_unreachable', 'no router has left a token here');
      return token.trim();
    },
  };
}
