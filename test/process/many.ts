// Much mail from one machine to another: sent, on its way, and stored.

import type { Machine } from './machines.ts';
import { openSession } from './session.ts';

/** As it lies in the store of whoever it was for, in the order of arrival. */
export const stored = (at: Machine): string[] =>
  at
    .rows<{ payload: string }>(
      "SELECT payload FROM message WHERE peer_key IS NOT NULL AND transport = 'link' ORDER BY seq",
    )
    .map(({ payload }) => JSON.parse(payload) as string);

/** Sends as many as one session can, each answered. */
export async function send(from: Machine, peer: string, texts: readonly string[]): Promise<void> {
  const session = await openSession(from, {}, ['--no-register']);
  const lanes = Array.from({ length: 8 }, async (_, lane) => {
    for (let nth = lane; nth < texts.length; nth += 8) {
      const payload = texts[nth] as string;
      const { isError, data } = await session.call('message', {
        action: 'send',
        project: 'shop',
        sender: from.name,
        recipient: 'reader',
        peer,
        payload,
        idempotency_key: payload,
      });
      if (isError) throw new Error(JSON.stringify(data));
    }
  });
  await Promise.all(lanes);
  await session.close();
}

export const numbered = (of: string, count: number): string[] =>
  Array.from({ length: count }, (_, nth) => `${of} ${nth}`);

/** How many no relay took yet, and what was wrong with the first. */
export async function pendingAt(from: Machine): Promise<{ count: number; why?: string }> {
  const answered = await from.ask(['inbox', 'pending']);
  const pending = answered.pending as { last_error: string | null }[];
  const count = pending.length + Number(answered.omitted ?? 0);
  const why = pending[0]?.last_error;
  return { count, ...(why && { why }) };
}
