// The bell of Tower, a host of no product: it takes a text, answers with a ticket, and begins a turn with the text as soon as
// no other runs. The ticket is the evidence; it proves that Tower keeps the text, and nothing that a model did with it.

import type { Bell, BellState, RingItem, RingOutcome } from '../../src/ports/bell.ts';
import { utf8Bytes } from '../../src/protocol/json.ts';

/** The largest text that Tower takes. */
const noticeBytesMax = 8_192;
const answerWaitMs = 5_000;

/** What Tower answers; `lost`: its connection closed before it did, and it may have taken the text. */
export type TowerAnswer = { ticket: string } | { error: 'full' | 'no such command' | 'bad text' } | 'lost';

/** The way to one session of Tower. It was opened for this session, and for no other. */
export interface Tower {
  tell(text: string): Promise<TowerAnswer>;
  isGone(): boolean;
  disconnect(): void;
}

export function towerBell(tower: Tower): Bell {
  let closed = false;
  /** An older Tower has no command for it: then it is certain that it cannot be rung. */
  let refusal: string | undefined;
  const isGone = (): boolean => closed || tower.isGone();

  return {
    describe: () => ({
      // A new kind of bell, adapter or host is a word in protocol/session.ts first; this example borrows one.
      bell: 'codex-queue',
      adapterKind: 'codex-queue',
      hostKind: 'other',
      contents: ['notice'],
      noticeBytesMax,
      fullBytesMax: 0,
      // It queues by itself, so that nobody waits for the end of its turn.
      pendingMax: 64,
      ringTimeoutMs: answerWaitMs,
      // One try a ring: whatever fails is rung for again by the schedule.
      attemptsMax: 1,
      retryGapMs: 0,
    }),

    // From memory: a state costs no question to the host.
    state: (): BellState => {
      if (isGone()) return { state: 'gone' };
      return refusal === undefined ? { state: 'ready' } : { state: 'refused', reason: refusal };
    },

    ring: async (item) => {
      if (isGone()) return rejected('adapter_disconnected', true);
      if (utf8Bytes(item.text) > noticeBytesMax) return rejected('native_message_too_large', true);
      const answer = await tower.tell(item.text);
      if (typeof answer === 'object' && 'error' in answer && answer.error === 'no such command')
        refusal = 'no_such_command';
      else refusal = undefined;
      return outcomeOf(answer, item);
    },

    close: () => {
      closed = true;
      tower.disconnect();
    },
  };
}

/** Each answer of the host is one of three outcomes, read here once. What nobody knows is `unknown`, and never a guess. */
function outcomeOf(answer: TowerAnswer, { content, notification_id }: RingItem): RingOutcome {
  if (answer === 'lost') return { outcome: 'unknown', code: 'adapter_disconnected' };
  if ('ticket' in answer) {
    const receipt = { notification_id, state: 'host_queued', ticket: answer.ticket };
    return { outcome: 'accepted', content, receipt };
  }
  // Full now is not full for ever; the others stay as they are, however often they are asked.
  return answer.error === 'full' ? rejected('adapter_queue_full', false) : rejected('adapter_rejected', true);
}

const rejected = (
  code: Extract<RingOutcome, { outcome: 'rejected' }>['code'],
  permanent: boolean,
): RingOutcome => ({ outcome: 'rejected', code, permanent });
