// A listener gets a row only for a cause that still counts: its session's own reservation, rung for the first time, or
// a hand-off that is not over.

import type { Row } from '../../../src/store/database.ts';
import type { Checker, MakeChecker } from '../checker.ts';

export const noRingWithoutItsCause: MakeChecker = ({ facts, nowMs, broken }): Checker => {
  const started = new Map<string, Set<string>>();
  const isHandedOver = (delivery: string): boolean =>
    [...(started.get(delivery) ?? [])].some((id) => {
      const connection = facts.connections.get(facts.attempts.get(id)?.connection ?? '');
      return connection !== undefined && !connection.ended && connection.leaseMs > nowMs();
    });
  const follow = (attempt: Row): void => {
    const delivery = attempt.delivery_id as string;
    const running = started.get(delivery) ?? new Set();
    if (attempt.state === 'started') running.add(attempt.attempt_id as string);
    else running.delete(attempt.attempt_id as string);
    if (running.size > 0) started.set(delivery, running);
    else started.delete(delivery);
  };
  return {
    name: 'no ring without its cause',
    beforeCommit: (changes) => {
      for (const { table, before, after } of changes) {
        if (table === 'attempt' && after !== undefined) follow(after);
        if (table !== 'listener_row' || before !== undefined || after === undefined) continue;
        const notice = facts.reservations.get(after.notification_id as string);
        const first =
          notice?.state === 'preparing' && notice.expiresAtMs > nowMs() && facts.waitsFor(notice.id);
        if (!first && ![...(notice?.covers.keys() ?? [])].some(isHandedOver))
          broken(`${after.session_id} is rung by ${after.notification_id} (${notice?.state}), for no cause`);
      }
    },
  };
};
