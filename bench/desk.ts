// The real parts of the product, put together as compose/ does, over a home of the benchmark's own.

import { mkdirSync } from 'node:fs';
import path from 'node:path';
import type { Caller, Desk } from '../src/mailbox/desk.ts';
import { intake } from '../src/mailbox/intake.ts';
import type { SendAnswer } from '../src/mailbox/send.ts';
import { send } from '../src/mailbox/send.ts';
import { systemClock } from '../src/platform/clock.ts';
import { readPrivateFile } from '../src/platform/files.ts';
import { placesOf } from '../src/platform/paths.ts';
import { systemRandom } from '../src/platform/random.ts';
import { fileWake } from '../src/platform/wake.ts';
import type { Router } from '../src/ports/router.ts';
import { Fault, isRefusal } from '../src/protocol/errors.ts';
import { Attachment } from '../src/router/attachment.ts';
import { type RouterAddress, routerCalls } from '../src/router/calls.ts';
import { openStore } from '../src/store/open.ts';

/** Of a message. */
export const payloadBytes = 1_024;
const payload = 'x'.repeat(payloadBytes);
const caller: Caller = { transport: 'mcp', source_host: 'bench' };

export interface BenchDesk extends Desk {
  address: RouterAddress;
  close(): void;
}

/** A router that is not there, without the system call that would find this out. */
const absentRouter: Router = {
  notify: () => Promise.reject(new Fault('router_unreachable', 'none')),
  discover: () => Promise.reject(new Fault('router_unreachable', 'none')),
};

/** @param home made here where it is missing */
export async function openDesk(home: string, way: 'router' | 'no router'): Promise<BenchDesk> {
  const places = placesOf({ HOME: home, POSTBELL_HOME: home });
  mkdirSync(path.join(home, 'runtime'), { recursive: true, mode: 0o700 });
  const clock = systemClock;
  const random = systemRandom;
  const store = await openStore({ path: places.database, clock, random });
  const address: RouterAddress = {
    socketPath: places.routerSocket,
    token: () => (readPrivateFile(places.routerToken) ?? '').trim(),
  };
  const calls = way === 'router' ? routerCalls(address, { clock }) : undefined;
  return {
    store,
    clock,
    random,
    wake: fileWake(places.wakeFile),
    router: calls ?? absentRouter,
    address,
    close: () => {
      calls?.close();
      store.close();
    },
  };
}

/** Sends one message; throws where it is refused. */
export async function sendOne(
  desk: Desk,
  to: { project: string; recipient: string; target_kind?: 'session' },
  key: string,
): Promise<SendAnswer> {
  const answer = await send(desk, { ...to, sender: 'bench', idempotency_key: key, payload }, caller);
  if (isRefusal(answer)) throw new Error(answer.message);
  return answer;
}

/** Ends the waiting of a message, so that the next one rings again. */
export async function takeIn(desk: Desk, { project, recipient, message_id }: SendAnswer): Promise<void> {
  const request = { project, recipient, message_id, idempotency_key: message_id, state: 'ingested' as const };
  const receipt = await intake(desk, request, caller);
  if (isRefusal(receipt)) throw new Error(receipt.message);
}

/** A session that accepts every hand-off at once. */
export function attach(desk: BenchDesk, session_id: string): Attachment {
  return new Attachment({
    ...desk,
    registration: {
      project: 'p',
      principal_id: session_id,
      session_id,
      adapter_kind: 'claude-listener',
      bell: 'listener',
      host_kind: 'claude',
    },
    startRouter: () => {},
    endRouter: () => '',
    take: async () => ({ content: 'notice', receipt: {} }),
    onFault: (error) => {
      throw error;
    },
  });
}
