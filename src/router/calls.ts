// The router port for callers that hold no session: one connection a call for a command, or one kept by a process.

import type { Clock } from '../ports/clock.ts';
import type { NotifyAnswer, Router } from '../ports/router.ts';
import { Fault } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import type { Card } from '../protocol/session.ts';
import { connectRouter, type RouterClient } from './client.ts';

export interface RouterAddress {
  socketPath: string;
  /** Read anew for each connection: a router makes it on its first start. Fault `router_unreachable` without one. */
  token(): string;
}

/** Keeps one connection open between calls, made when a first call needs it; `close` ends it. */
export function routerCalls(address: RouterAddress, ports: { clock: Clock }): Router & { close(): void } {
  let current: Promise<RouterClient> | undefined;
  const forget = (): void => {
    current = undefined;
  };
  const client = (): Promise<RouterClient> => {
    if (current === undefined) {
      current = connectRouter(address.socketPath, ports, { onClose: forget });
      current.catch(forget);
    }
    return current;
  };
  const call = async (frame: { type: string; [field: string]: unknown }, waitMs: number) => {
    const auth_token = address.token();
    const connection = await client();
    try {
      return await connection.request({ ...frame, auth_token }, waitMs);
    } catch (error) {
      if (error instanceof Fault && error.code === 'connection_closed')
        throw new Fault('router_timeout', 'the router ended before it answered, if it was asked at all', {
          cause: error,
        });
      throw error;
    }
  };
  return {
    notify: async (request) => {
      const { ok: _, ...answer } = await call(
        { type: 'notify', ...request },
        request.wait ? limits.exactSessionWaitMs : limits.routerCallWaitMs,
      );
      return answer as unknown as NotifyAnswer;
    },
    discover: async (request) => {
      const answer = await call({ type: 'discover', ...request }, limits.routerCallWaitMs);
      return answer.cards as Card[];
    },
    close: () => {
      current?.then(
        (connection) => connection.close(),
        () => {},
      );
    },
  };
}
