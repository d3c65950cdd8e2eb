// The queue bell: `codex queue` puts a notice beside the thread, and the thread's process begins a turn with it when it is
// idle. Exit 0 is the evidence: Codex stored an item, which it deletes when its turn starts. It proves no turn and no reading.

import type { Bell, BellState, RingOutcome } from '../../ports/bell.ts';
import { utf8Bytes } from '../../protocol/json.ts';
import { limits } from '../../protocol/limits.ts';
import { isThreadId } from '../../protocol/thread.ts';
import { codexNotice } from './notice.ts';
import type { Queued } from './queue.ts';

export interface QueueBellPorts {
  thread: string;
  /** What Codex is given for an item. */
  render?: typeof codexNotice;
  /** Puts the notice in the thread's queue; `ended` where nobody waits for it any more. */
  queue(notice: string, ended: AbortSignal): Promise<Queued>;
}

/** The command is ended by its own limit first, which says so. */
const afterItsLimitMs = 1_000;

export function queueBell({ thread, queue, render = codexNotice }: QueueBellPorts): Bell {
  let closed = false;
  const ended = new AbortController();
  /** A thread that keeps nothing on disk has no queue. */
  let refusal: string | undefined;
  const rejected = (code: Extract<RingOutcome, { outcome: 'rejected' }>['code']): RingOutcome => ({
    outcome: 'rejected',
    code,
    permanent: true,
  });
  return {
    describe: () => ({
      bell: 'codex-queue',
      adapterKind: 'codex-queue',
      hostKind: 'codex',
      contents: ['notice'],
      noticeBytesMax: limits.codexNoticeBytesMax,
      fullBytesMax: 0,
      pendingMax: limits.handOffsPendingMax,
      ringTimeoutMs: limits.codexQueueWaitMs + afterItsLimitMs,
      attemptsMax: limits.codexQueueAttemptsMax,
      retryGapMs: limits.codexQueueGapMs,
    }),
    state: (): BellState => {
      if (closed) return { state: 'gone' };
      return refusal === undefined ? { state: 'ready' } : { state: 'refused', reason: refusal };
    },
    ring: async (item): Promise<RingOutcome> => {
      if (closed) return rejected('adapter_disconnected');
      if (!isThreadId(thread)) return rejected('thread_not_found');
      const notice = render(item);
      if (utf8Bytes(notice) > limits.codexNoticeBytesMax) return rejected('native_message_too_large');
      if (notice.includes('\0')) return rejected('adapter_rejected');
      const queued = await queue(notice, ended.signal);
      if (queued.outcome !== 'queued') {
        if (queued.code === 'thread_unavailable') refusal = queued.code;
        return queued;
      }
      const { submission_id } = queued;
      const receipt = {
        notification_id: item.notification_id,
        state: 'host_queued',
        thread_id: thread,
        ...(submission_id !== undefined && { submission_id }),
      };
      return { outcome: 'accepted', content: 'notice', receipt };
    },
    close: () => {
      closed = true;
      ended.abort();
    },
  };
}
