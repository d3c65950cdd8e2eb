// Hop 5 for a session: all mail that waits for it now. Consumes nothing.

import { type ReceivedMessage, receiptKeyOf } from '../protocol/delivery.ts';
import { isRefusal, type Result } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import type { ReceiveRequest } from '../protocol/requests.ts';
import type { Caller, Desk } from './desk.ts';
import { inboxOf } from './inbox.ts';
import { page } from './page.ts';
import { peerNames } from './peer-names.ts';

export interface ReceiveAnswer {
  messages: ReceivedMessage[];
  progress_waiting: number;
  remaining: number;
  /** Other projects where attention-worthy mail waits for the caller's principal. */
  elsewhere: { project: string; waiting: number }[];
}

/** `notification_id` is advisory: it changes nothing. */
export function receive(
  desk: Pick<Desk, 'store' | 'clock' | 'account'>,
  request: ReceiveRequest,
  caller: Caller,
): Result<ReceiveAnswer> {
  const named = peerNames(desk);
  return desk.store.read((tx) => {
    const inbox = inboxOf(tx, caller, request, desk.clock.nowMs());
    if (isRefusal(inbox)) return inbox;
    const { unread, progress } = tx.waiting.counts(inbox);
    const listed = tx.waiting.list(inbox, request.limit ?? limits.receiveCountDefault);
    const messages = page(tx, listed, (stored) => stored).map(([{ message }, payload]) => ({
      ...named(message),
      payload,
      receipt: receiptKeyOf(message),
      untrusted: true as const,
    }));
    return {
      messages,
      progress_waiting: progress,
      remaining: unread + progress - messages.length,
      elsewhere: tx.waiting.elsewhere(inbox, limits.elsewhereCountMax),
    };
  });
}
