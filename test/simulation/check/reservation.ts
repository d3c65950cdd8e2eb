// A session has one current reservation at most: the next is opened only when the last has ended, was released, or had
// its end brought forward by mail that it does not cover.

import type { Row } from '../../../src/store/database.ts';
import type { Checker, MakeChecker } from '../checker.ts';

const firstStepMs = 30_000;
const longestStepMs = 300_000;

export const oneReservationASession: MakeChecker = ({ facts, nowMs, broken }): Checker => {
  /** Mail to a principal starts no hand-off while a reservation is current. */
  const joinsOnlyForASession = (attempt: Row): void => {
    const delivery = facts.deliveries.get(attempt.delivery_id as string);
    const session = facts.connections.get(attempt.connection_id as string)?.session;
    const current = session === undefined ? undefined : facts.newest.get(facts.root(session));
    if (delivery === undefined || delivery.toSession || current === undefined) return;
    const leftMs = current.expiresAtMs - nowMs();
    if (leftMs > 0 && leftMs <= longestStepMs && facts.coveredWaiting(current).length > 0)
      broken(`${attempt.attempt_id} was started while ${current.id} is current`);
  };
  return {
    name: 'one reservation a session',
    beforeCommit: (changes) => {
      const opened = new Set<unknown>();
      for (const { table, before, after } of changes) {
        if (table === 'attempt' && before === undefined && after !== undefined) joinsOnlyForASession(after);
        if (table !== 'reservation' || before !== undefined || after === undefined) continue;
        const root = after.session_root as string;
        if (opened.has(root)) broken(`two reservations of ${root} in one transaction`);
        opened.add(root);
        const last = facts.newest.get(root);
        if (last === undefined || facts.coveredWaiting(last).length === 0) continue;
        const leftMs = last.expiresAtMs - nowMs();
        if (leftMs <= 0 || leftMs > longestStepMs) continue;
        const covers = changes.filter(
          (change) =>
            change.table === 'reservation_cover' && change.after?.notification_id === after.notification_id,
        );
        const fresh = covers.some((change) => !last.covers.has(change.after?.delivery_id as string));
        if (fresh && nowMs() >= last.rungAtMs + firstStepMs) continue;
        broken(`${after.notification_id} of ${root} was opened ${leftMs} ms before the end of ${last.id}`);
      }
    },
  };
};
