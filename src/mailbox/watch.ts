// A poll that says at once that it listens, and then what came.

import { isRefusal, type Result } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import type { PollRequest } from '../protocol/requests.ts';
import type { Desk } from './desk.ts';
import { type PollAnswer, poll } from './poll.ts';

export type WatchAnswer = { type: 'events' | 'timeout' } & Pick<PollAnswer, 'events' | 'next_cursor'>;

/** @param ready called once it is known that the request can be served */
export async function watch(
  desk: Desk,
  request: PollRequest,
  ready: (line: object) => void,
  ended?: AbortSignal,
): Promise<Result<WatchAnswer>> {
  const now = await poll(desk, { ...request, wait_ms: 0 }, ended);
  if (isRefusal(now)) return now;
  const { project, recipient, sender } = now;
  ready({
    type: 'ready',
    project,
    ...(recipient !== undefined && { recipient }),
    ...(sender !== undefined && { sender }),
    cursor: request.cursor ?? null,
  });
  if (now.events.length > 0) return answerOf(now);
  const wait_ms = request.wait_ms ?? limits.pollWaitMsMax;
  const later = await poll(desk, { ...request, wait_ms }, ended);
  return isRefusal(later) ? later : answerOf(later);
}

const answerOf = ({ events, next_cursor }: PollAnswer): WatchAnswer => ({
  type: events.length > 0 ? 'events' : 'timeout',
  events,
  next_cursor,
});
