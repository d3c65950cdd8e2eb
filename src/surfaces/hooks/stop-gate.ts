// Stop: what keeps the gate from looking at all. Its block is a form of Claude Code's own.

import type { Store } from '../../ports/store.ts';
import type { HookOutcome } from '../../protocol/hook-outcome.ts';
import type { HostKind } from '../../protocol/session.ts';
import type { HookPayload } from './input.ts';
import { faultLine, faultOf, refusalLine, type Said } from './outcome.ts';
import type { Reminded, StoreOrFault } from './remind.ts';

export interface Stop {
  store: StoreOrFault;
  host: HostKind | undefined;
  payload: HookPayload;
  reminded: Reminded;
}

/** @param gate blocks or not, over a store that can be read */
export async function stop(
  { store, host, payload, reminded }: Stop,
  gate: (store: Store) => Promise<HookOutcome>,
): Promise<Said> {
  const refusal = refusalLine(reminded.ignored);
  const skipped = (reason: string): Said => ({
    stdout: '',
    stderr: refusal,
    outcome: { outcome: 'skipped', reason },
  });
  if (host !== 'claude') return skipped('not this host');
  if (payload.problem !== undefined) return skipped('no input');
  if (store === undefined) return skipped('no mail yet');
  if (!('fault' in store)) return { stdout: '', stderr: refusal, outcome: await gate(store) };
  const { fault } = store;
  return { stdout: '', stderr: refusal + faultLine('inbox', fault), outcome: faultOf('inbox', fault) };
}
