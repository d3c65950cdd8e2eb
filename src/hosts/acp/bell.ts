// The ACP bell: a notice as a prompt of its own in the agent's one session. The agent's first word on that prompt, or the
// prompt's end, is the evidence; it proves that the agent took the prompt, and nothing that a model did with it.

import type { Bell, BellState, RingOutcome } from '../../ports/bell.ts';
import { limits } from '../../protocol/limits.ts';
import type { HostKind } from '../../protocol/session.ts';
import type { AcpSession, Stop } from './session.ts';

/** The agent cannot use Postbell's tools, so that it could read nothing of what it were rung for. */
export const toolsNotLoaded = 'tools_not_loaded';

export interface AcpBellOptions {
  session: Pick<AcpSession, 'isBusy' | 'isGone' | 'notify'>;
  hostKind: HostKind;
  /** Whether the agent has asked our server for its tools. */
  toolsLoaded(): boolean;
  /** How the prompt of a ring ended; `attemptId` is that of the router's hand-off. */
  onStop(stop: Stop, attemptId: string | undefined): void;
}

export function acpBell({ session, hostKind, toolsLoaded, onStop }: AcpBellOptions): Bell {
  let closed = false;
  const isGone = (): boolean => closed || session.isGone();
  return {
    describe: () => ({
      bell: 'acp',
      adapterKind: 'acp',
      hostKind,
      contents: ['notice'],
      noticeBytesMax: limits.noticeBytesMax,
      fullBytesMax: 0,
      pendingMax: 1,
      ringTimeoutMs: limits.acpAnswerWaitMs,
      attemptsMax: 1,
      retryGapMs: 0,
    }),
    state: (): BellState => {
      if (isGone()) return { state: 'gone' };
      if (!toolsLoaded()) return { state: 'refused', reason: toolsNotLoaded };
      return { state: session.isBusy() ? 'busy' : 'ready' };
    },
    ring: async ({ text, content, notification_id, attempt_id }) => {
      if (isGone()) return { outcome: 'rejected', code: 'adapter_disconnected', permanent: true };
      if (!toolsLoaded()) return { outcome: 'rejected', code: 'adapter_rejected', permanent: true };
      // Who rings waits for the end of a turn; a prompt of its own would be lost, or would stop the turn.
      if (session.isBusy()) return { outcome: 'rejected', code: 'adapter_error', permanent: false };
      const { taken, stopped } = session.notify(text);
      void stopped.then((stop) => onStop(stop, attempt_id));
      const first = await Promise.race([taken, stopped]);
      if (first !== 'taken' && first.stop !== 'ended') return outcomeOf(first);
      return { outcome: 'accepted', content, receipt: { notification_id, state: 'host_queued' } };
    },
    close: () => {
      closed = true;
    },
  };
}

/** No such method, no such parameters: the numbers are those of JSON-RPC. */
const neverTaken = [-32_601, -32_602];
/** No request, or one of somebody who must log in first; that number is of the Agent Client Protocol. */
const notNow = [-32_600, -32_000];

function outcomeOf(stop: Exclude<Stop, { stop: 'ended' }>): RingOutcome {
  // It may have been read before the connection was lost.
  if (stop.stop === 'lost') return { outcome: 'unknown', code: 'adapter_disconnected' };
  if (stop.stop === 'unreadable') return { outcome: 'unknown', code: 'invalid_response' };
  // Any other error may come in the middle of a turn.
  const permanent = neverTaken.includes(stop.code);
  if (permanent || notNow.includes(stop.code))
    return { outcome: 'rejected', code: 'adapter_rejected', permanent };
  return { outcome: 'unknown', code: 'adapter_error' };
}
