// Each acceptance has its finished attempt, which returned it or timed out before it came, and, for a listener, its
// committed row; each receipt was asked for; each
// delivery comes with its message and event.

import type { Checker, MakeChecker } from '../checker.ts';

export const noReceiptWithoutItsEvent: MakeChecker = ({ facts, nowMs, broken }): Checker => {
  const asked = new Map<string, Set<string | undefined>>();
  return {
    name: 'no receipt without its event',
    afterCommit: (changes) => {
      for (const { table, before, after } of changes) {
        if (after === undefined) continue;
        if (table === 'host_accept') {
          const attempt = facts.attempts.get(after.attempt_id as string);
          if (attempt === undefined || attempt.state === 'started' || attempt.delivery !== after.delivery_id)
            broken(`${after.host_accept_id} has no finished attempt of its delivery`);
          const late = attempt?.state === 'adapter_failed' && attempt.failure === 'host_outcome_timeout';
          if (attempt?.state !== 'adapter_returned' && !late)
            broken(
              `${after.host_accept_id} is of an attempt that is ${attempt?.state} (${attempt?.failure})`,
            );
          const connection = facts.connections.get(attempt?.connection ?? '');
          if (connection === undefined || connection.ended || connection.leaseMs <= nowMs())
            broken(`${after.host_accept_id} is of a connection that has ended`);
          if (after.adapter_kind === 'claude-listener') {
            const { notification_id } = JSON.parse(after.receipt as string) as { notification_id?: string };
            const session = connection?.session ?? '';
            const cover = facts.reservations
              .get(notification_id ?? '')
              ?.covers.get(after.delivery_id as string);
            const row = facts
              .chain(session)
              .some((id) => facts.lines.get(id)?.some((line) => line.notice === notification_id));
            if (!row || !cover?.rung)
              broken(
                `${after.host_accept_id} stands on no listener row of ${notification_id}: row ${row}, covered ${cover !== undefined}, rung ${cover?.rung}, ${after.delivery_id} by ${after.attempt_id}`,
              );
          }
        }
        if (table === 'attempt' && before?.state === 'started' && after.state === 'adapter_returned')
          if (!facts.deliveries.get(after.delivery_id as string)?.accepted)
            broken(`${after.attempt_id} was accepted, and there is no acceptance`);
        if (table === 'receipt') {
          const callers = asked.get(facts.deliveries.get(after.delivery_id as string)?.messageId ?? '');
          if (!callers?.has((after.caller_session as string | null) ?? undefined))
            broken(`${after.receipt_id} of ${after.delivery_id} is of a call that was never made`);
        }
        if (table === 'delivery' && before === undefined) {
          const delivery = facts.deliveries.get(after.delivery_id as string);
          if (!delivery?.hasEvent || !facts.messages.has(after.message_id as string))
            broken(`${after.delivery_id} came without its message or its event`);
        }
      }
    },
    onDeed: (deed) => {
      if (deed.kind !== 'asked' || deed.call !== 'consume') return;
      for (const id of deed.messageIds) {
        const callers = asked.get(id);
        if (callers === undefined) asked.set(id, new Set([deed.session]));
        else callers.add(deed.session);
      }
    },
  };
};
