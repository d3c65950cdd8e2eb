// No delivery is handed twice to one connection, but where its sender asked again; none that was taken in.

import type { Checker, MakeChecker } from '../checker.ts';

export const oneHandOff: MakeChecker = ({ facts, broken }): Checker => {
  const askedByKey = new Map<string, number>();
  const keyOf = new Map<string, string>();
  const handed = new Map<string, number>();
  const attempts = new Set<string>();
  return {
    name: 'one hand-off a delivery and generation',
    beforeCommit: (changes) => {
      for (const { table, before, after } of changes) {
        if (table === 'idempotency' && after !== undefined)
          keyOf.set(after.message_id as string, after.idempotency_key as string);
        if (table !== 'attempt' || before !== undefined || after === undefined) continue;
        const delivery = facts.deliveries.get(after.delivery_id as string);
        if (!delivery?.open || !delivery.worthy || delivery.accepted)
          broken(`${after.attempt_id} is for ${after.delivery_id}, which needs no hand-off`);
      }
    },
    onDeed: (deed) => {
      if (deed.kind === 'asked' && deed.call === 'send')
        askedByKey.set(deed.key, (askedByKey.get(deed.key) ?? 0) + 1);
      if (deed.kind !== 'handed') return;
      if (attempts.has(deed.attemptId)) broken(`${deed.attemptId} was handed twice`);
      attempts.add(deed.attemptId);
      const where = `${deed.deliveryId} ${deed.connectionId} ${deed.generation}`;
      const count = (handed.get(where) ?? 0) + 1;
      handed.set(where, count);
      const messageId = facts.deliveries.get(deed.deliveryId)?.messageId ?? '';
      const sends = askedByKey.get(keyOf.get(messageId) ?? '') ?? 0;
      if (count > Math.max(1, sends)) broken(`${where} was handed ${count} times for ${sends} sends`);
    },
  };
};
