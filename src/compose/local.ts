// The ground with the way to the local router: what the use cases of the mail are handed.

import { type Environment, quotaOf } from '../platform/environment.ts';
import { readPrivateFile } from '../platform/files.ts';
import { checkSocketPath, type Places } from '../platform/paths.ts';
import type { Account } from '../ports/account.ts';
import { Fault } from '../protocol/errors.ts';
import { type RouterAddress, routerCalls } from '../router/calls.ts';
import { accountIn } from './pairing.ts';
import { type Ground, openGround } from './store.ts';

export interface Local extends Ground {
  address: RouterAddress;
  quota?: number | 'malformed';
  account: Account;
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
    address,
    router,
    close: () => {
      router.close();
      ground.store.close();
    },
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
