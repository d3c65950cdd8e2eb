// `postbell peer pair` without an address: prints the own one and shows each request that comes, until one of them was accepted or
// its person ends it.

import type { PairingCalls } from '../../peers/pairing/calls.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Wake } from '../../ports/wake.ts';
import { isRefusal, Refusal, type Result } from '../../protocol/errors.ts';
import { quoted } from '../../protocol/json.ts';
import { limits } from '../../protocol/limits.ts';
import { inertJson } from '../../protocol/untrusted.ts';
import { requestText, waitingText } from './peer-texts.ts';
import type { Terminal } from './run.ts';

export interface WaitForRequest {
  calls: PairingCalls;
  clock: Clock;
  wake: Pick<Wake, 'watch'>;
  terminal: Terminal;
  address: string | null;
  json: boolean;
  byOperator: boolean;
  ended: AbortSignal;
}

export async function waitForRequest(options: WaitForRequest): Promise<Result<object | string>> {
  const { address, calls, terminal, json, byOperator, ended } = options;
  if (address === null)
    return new Refusal(
      'invalid_request',
      'this account has no relay: set POSTBELL_RELAYS, also for the router',
      {
        field: 'POSTBELL_RELAYS',
      },
    );
  await terminal.out(json ? `${JSON.stringify({ address })}\n` : `${waitingText(address)}\n`);
  const shown = new Set<string>();
  const touched = touches(options);
  try {
    while (!ended.aborted) {
      const found = await calls.requests({ byOperator });
      if (isRefusal(found)) return found;
      // One that repeats itself is shown once.
      for (const request of found.requests.filter(({ key }) => !shown.has(key))) {
        shown.add(request.key);
        await terminal.out(json ? `${inertJson(request)}\n` : `\n${requestText(request)}\n`);
      }
      const listed = calls.list();
      if (isRefusal(listed)) return listed;
      const peer = listed.peers.find(({ key }) => shown.has(key));
      if (peer !== undefined) return json ? peer : `${quoted(peer.name)} is a peer here now.`;
      await touched.next();
    }
    return json ? { ended: true } : 'The wait is ended.';
  } finally {
    touched.close();
  }
}

/** A touch, a tick for one that was lost, or the end. */
function touches({ clock, wake, ended }: WaitForRequest) {
  let touched = false;
  let resume = (): void => {};
  const look = (): void => {
    touched = true;
    resume();
  };
  const unwatch = wake.watch(look);
  ended.addEventListener('abort', look);
  return {
    next: async (): Promise<void> => {
      if (!touched)
        await new Promise<void>((resolve) => {
          const cancel = clock.after(limits.wakeTickMs, resolve);
          resume = () => {
            cancel();
            resolve();
          };
        });
      touched = false;
    },
    close: () => {
      unwatch();
      ended.removeEventListener('abort', look);
    },
  };
}
