// A session of a peer by the beginning of its id, for people: whoever types it may stop where only one listed session begins so.

import type { Desk } from '../mailbox/desk.ts';
import { isRefusal, Refusal, type Result } from '../protocol/errors.ts';
import { addressee } from './who.ts';

/** The id that is meant: a listed one exactly, else the only listed one that begins so, else the text as it is. */
export function sessionMeantBy(
  desk: Pick<Desk, 'store' | 'account'>,
  { peer, recipient }: { peer: string; recipient: string },
): Result<string> {
  const to = addressee(desk.account, peer);
  // The send says what is wrong with it.
  if (isRefusal(to)) return recipient;
  const listed = desk.store.read((tx) =>
    tx.devices.of(to.key).flatMap(({ sessions }) => sessions.map(({ session_id }) => session_id)),
  );
  if (listed.includes(recipient)) return recipient;
  const fitting = [...new Set(listed.filter((id) => id.startsWith(recipient)))];
  const [only, ...others] = fitting;
  if (only === undefined) return recipient;
  if (others.length === 0) return only;
  const shown = fitting
    .slice(0, 5)
    .map((id) => JSON.stringify(id))
    .join(', ');
  return new Refusal('ambiguous_peer', `${fitting.length} sessions there begin so: ${shown}`, {
    field: 'recipient',
  });
}
