// The app-server bell: a turn of a thread that Postbell made begins with the notice. The answer with a turn id is the
// evidence: Codex began a turn. One turn at a time, since input for a busy thread would join the turn that runs.

import type { Bell, BellState, RingItem, RingOutcome } from '../../ports/bell.ts';
import type { ErrorCode } from '../../protocol/errors.ts';
import { utf8Bytes } from '../../protocol/json.ts';
import { limits } from '../../protocol/limits.ts';
import { type AppServer, idOf, type RpcError } from './app-server.ts';
import { codexNotice } from './notice.ts';

/** An answer after the ring's own time is still known, and no other turn is begun meanwhile. */
const answerWaitMs = 120_000;

/** More than end while the beginning of one is answered. */
const endedKept = 32;

/** The turn of one thread, as the server tells of it. */
export class ThreadTurn {
  readonly #thread: () => string | undefined;
  #running: string | undefined;
  /** The newest ones. */
  #ended: readonly string[] = [];

  constructor(thread: () => string | undefined) {
    this.#thread = thread;
  }

  get running(): string | undefined {
    return this.#running;
  }

  /** It may have ended before its beginning was answered. */
  began(turn: string): void {
    if (!this.#ended.includes(turn)) this.#running = turn;
  }

  notified(method: string, { threadId, turn }: Record<string, unknown>): void {
    const id = idOf(turn);
    if (threadId !== this.#thread() || id === undefined) return;
    if (method === 'turn/started') this.began(id);
    if (method !== 'turn/completed') return;
    this.#ended = [...this.#ended, id].slice(-endedKept);
    if (this.#running === id) this.#running = undefined;
  }
}

export interface ManagedPorts {
  server: AppServer;
  thread: string;
  turn: ThreadTurn;
  /** Codex has ended, or is being ended. */
  isGone(): boolean;
}

export function managedBell({ server, thread, turn, isGone }: ManagedPorts): Bell {
  let closed = false;
  let beginning = false;
  const isBusy = (): boolean => beginning || turn.running !== undefined;
  const begin = async (item: RingItem): Promise<RingOutcome> => {
    const text = codexNotice(item);
    if (utf8Bytes(text) > limits.codexNoticeBytesMax) return rejected('native_message_too_large', true);
    const input = [{ type: 'text', text, text_elements: [] }];
    const reply = await server.request('turn/start', { threadId: thread, input }, answerWaitMs);
    if ('error' in reply) return refusalOf(reply.error);
    // It may have begun all the same.
    if ('lost' in reply) return { outcome: 'unknown', code: lostCodes[reply.lost] };
    const turn_id = idOf(reply.result.turn);
    if (turn_id === undefined) return { outcome: 'unknown', code: 'invalid_response' };
    turn.began(turn_id);
    const receipt = {
      notification_id: item.notification_id,
      state: 'host_queued',
      thread_id: thread,
      turn_id,
    };
    return { outcome: 'accepted', content: 'notice', receipt };
  };
  return {
    describe: () => ({
      bell: 'codex-queue',
      adapterKind: 'codex-app-server',
      hostKind: 'codex',
      contents: ['notice'],
      noticeBytesMax: limits.codexNoticeBytesMax,
      fullBytesMax: 0,
      pendingMax: 1,
      ringTimeoutMs: limits.hostOutcomeWaitMs,
      attemptsMax: 1,
      retryGapMs: 0,
    }),
    state: (): BellState => {
      if (closed || isGone()) return { state: 'gone' };
      return { state: isBusy() ? 'busy' : 'ready' };
    },
    ring: async (item) => {
      if (closed || isGone()) return rejected('adapter_disconnected', true);
      if (isBusy()) return rejected('adapter_queue_full', false);
      beginning = true;
      try {
        return await begin(item);
      } finally {
        beginning = false;
      }
    },
    close: () => {
      closed = true;
    },
  };
}

const lostCodes = {
  timeout: 'host_outcome_timeout',
  closed: 'adapter_disconnected',
  too_long: 'invalid_response',
  unreadable: 'invalid_response',
} as const satisfies Record<string, ErrorCode>;

const rejected = (code: ErrorCode, permanent: boolean): RingOutcome => ({
  outcome: 'rejected',
  code,
  permanent,
});

/** What comes before a turn: no request, no such method, no such parameters (JSON-RPC); too much to do (Codex). */
const neverBegun = [-32600, -32601, -32602, -32001];

function refusalOf({ code, message }: RpcError): RingOutcome {
  if (!neverBegun.includes(code)) return { outcome: 'unknown', code: 'adapter_error' };
  return /thread not found|no rollout found/i.test(message)
    ? rejected('thread_not_found', true)
    : rejected('adapter_rejected', false);
}
