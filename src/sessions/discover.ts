// Who is live in one project. Discovery writes nothing.

import { limits } from '../protocol/limits.ts';
import type { Card } from '../protocol/session.ts';
import type { Switchboard } from './switchboard.ts';

export function discover(
  board: Pick<Switchboard, 'store' | 'clock'>,
  request: { project: string; limit?: number },
): Card[] {
  const count = request.limit ?? limits.discoverCountDefault;
  return board.store.read((tx) => tx.sessions.cards(request.project, board.clock.nowMs(), count));
}
