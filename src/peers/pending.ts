// What is on its way to other machines and no relay has taken: with age, tries and what was wrong last. And the end of it by hand.

import { type Desk, timestamp } from '../mailbox/desk.ts';
import { peerNames } from '../mailbox/peer-names.ts';
import type { Tx } from '../ports/store.ts';
import { Refusal, type Result } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import { endEntry } from './carry.ts';

export interface PendingMessage {
  message_id: string;
  peer: string;
  created_at: string;
  age_ms: number;
  attempts: number;
  /** Null while no machine of the peer is known. */
  next_attempt_at: string | null;
  last_error: string | null;
}

export interface PendingAnswer {
  pending: PendingMessage[];
  /** How many more there are; absent where none. */
  omitted?: number;
}

export function pending(desk: Pick<Desk, 'store' | 'clock' | 'account'>): PendingAnswer {
  const named = peerNames(desk);
  return desk.store.read((tx) => {
    const rows = tx.outbox.pending(tx.outbox.totals().count);
    const shown = rows.slice(0, limits.pendingCountMax).flatMap(({ message_id }): PendingMessage[] => {
      const message = tx.messages.byId(message_id)?.message;
      if (message === undefined) return [];
      return [
        {
          ...standing(tx, message_id),
          message_id,
          peer: named(message).peer as string,
          created_at: message.created_at,
          age_ms: Math.max(0, desk.clock.nowMs() - Date.parse(message.created_at)),
        },
      ];
    });
    const omitted = Math.max(0, rows.length - limits.pendingCountMax);
    return { pending: shown, ...(omitted > 0 && { omitted }) };
  });
}

function standing(
  tx: Tx,
  messageId: string,
): Pick<PendingMessage, 'attempts' | 'next_attempt_at' | 'last_error'> {
  const posts = tx.outbox.posts(messageId);
  const next = posts.flatMap(({ next_ms }) => next_ms ?? []).sort((a, b) => a - b)[0];
  const [worst] = [...posts].sort((a, b) => b.attempts - a.attempts);
  return {
    attempts: worst?.attempts ?? 0,
    next_attempt_at: next === undefined ? null : new Date(next).toISOString(),
    last_error: posts.find(({ last_error }) => last_error !== null)?.last_error ?? null,
  };
}

/** Ends the entry; the message stays, with that fact. Refusal `not_found` for whatever is not on its way. */
export async function discard(
  desk: Pick<Desk, 'store' | 'clock' | 'random' | 'wake'>,
  messageId: string,
): Promise<Result<object>> {
  const done = await desk.store.write((tx) => {
    const entry = tx.outbox.of(messageId);
    if (entry === undefined || entry.ended_at !== null)
      return new Refusal('not_found', 'no message of that id is on its way to another machine', {
        field: 'discard',
      });
    endEntry(tx, desk, entry, 'discarded');
    return { discarded: messageId, at: timestamp(desk) };
  });
  desk.wake.touch();
  return done;
}
