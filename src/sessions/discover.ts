// Who is live in one project. Discovery writes nothing.

import type { Tx } from '../ports/store.ts';
import { limits } from '../protocol/limits.ts';
import type { Card, CardDetail } from '../protocol/session.ts';
import { namesOf } from './principals.ts';
import type { Switchboard } from './switchboard.ts';

export function discover(
  board: Pick<Switchboard, 'store' | 'clock'>,
  request: { project: string; limit?: number; detail?: boolean },
): (Card | (Card & CardDetail))[] {
  const count = request.limit ?? limits.discoverCountDefault;
  const nowMs = board.clock.nowMs();
  return board.store.read((tx) => {
    const cards = tx.sessions.cards(request.project, nowMs, count);
    return request.detail ? cards.map((card) => ({ ...card, ...detailOf(tx, card, nowMs) })) : cards;
  });
}

function detailOf(tx: Tx, card: Card, nowMs: number): CardDetail | undefined {
  const { project, session_id, principal_id } = card;
  const connection = tx.sessions.live(project, [session_id], nowMs);
  if (connection === undefined) return undefined;
  const ids = tx.identity.chain(session_id);
  const inbox = { project, principals: namesOf(tx, principal_id), targets: ids, intended: ids, named: false };
  const { unread, progress } = tx.waiting.counts(inbox);
  const rings = tx.notices.rings(ids[0] as string, limits.ringsShown);
  const last_rings = rings.map((ms) => new Date(ms).toISOString());
  const { bell, connected_at } = connection;
  return {
    bell,
    bell_state:
      bell === 'none' ? { state: 'deaf', reason: 'no_bell', last_rings } : { state: 'live', last_rings },
    waiting: unread + progress,
    connected_at,
  };
}
