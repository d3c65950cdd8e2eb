// No delivery is handed twice to one connection, but where its sender asked again, and once more by the drain of the
// registration; none that needs no turn; none to a registration that its sender did not expect.

import { fallbackPrefix } from '../../../src/protocol/message.ts';
import type { Checker, MakeChecker } from '../checker.ts';

export const oneHandOff: MakeChecker = ({ facts, broken }): Checker => {
  const askedByKey = new Map<string, number>();
  const expected = new Map<string, number | undefined>();
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
        if (delivery === undefined || !facts.waits(delivery) || !delivery.worthy || delivery.accepted)
          broken(`${after.attempt_id} is for ${after.delivery_id}, which needs no hand-off`);
      }
    },
    onDeed: (deed) => {
      if (deed.kind === 'asked' && deed.call === 'send') {
        askedByKey.set(deed.key, (askedByKey.get(deed.key) ?? 0) + 1);
        expected.set(deed.key, deed.letter.expected_generation);
      }
      if (deed.kind !== 'handed') return;
      if (attempts.has(deed.attemptId)) broken(`${deed.attemptId} was handed twice`);
      attempts.add(deed.attemptId);
      const where = `${deed.deliveryId} ${deed.connectionId} ${deed.generation}`;
      const count = (handed.get(where) ?? 0) + 1;
      handed.set(where, count);
      const delivery = facts.deliveries.get(deed.deliveryId);
      const key = keyOf.get(delivery?.messageId ?? '') ?? '';
      const sends = askedByKey.get(key.replace(fallbackPrefix, '')) ?? 0;
      const generation = expected.get(key);
      if (delivery?.toSession && generation !== undefined && generation !== deed.generation)
        broken(`${where} was handed, and its sender expected generation ${generation}`);
      const drains = delivery?.toSession ? 0 : 1;
      if (count > sends + drains) broken(`${where} was handed ${count} times for ${sends} sends`);
    },
  };
};
