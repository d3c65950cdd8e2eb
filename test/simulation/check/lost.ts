// Every answered send is there, and every message that was not taken in still waits.

import type { Checker, MakeChecker } from '../checker.ts';

export const acknowledgedIsNeverLost: MakeChecker = ({ facts, rows, broken }): Checker => {
  const answered = new Set<string>();
  const kept = new Set(['message', 'delivery', 'event', 'idempotency', 'receipt', 'attempt', 'host_accept']);
  return {
    name: 'acknowledged is never lost',
    beforeCommit: (changes) => {
      const takenIn = new Set<unknown>();
      for (const { table, after } of changes)
        if (table === 'receipt' && after?.receipt_kind === 'intake') takenIn.add(after.delivery_id);
      for (const { table, before, after } of changes) {
        if (after === undefined && kept.has(table))
          broken(`a row of ${table} was deleted: ${JSON.stringify(before)}`);
        if (table !== 'delivery' || before === undefined || after === undefined) continue;
        if (before.open === 1 && after.open !== 1 && !takenIn.has(after.delivery_id))
          broken(`${after.delivery_id} waits no more, and nobody took it in`);
        if (before.open !== 1 && after.open === 1) broken(`${after.delivery_id} waits again`);
      }
    },
    onDeed: (deed) => {
      if (deed.kind === 'answered' && deed.call === 'send') {
        const delivery = facts.deliveryOfMessage.get(deed.messageId);
        if (delivery === undefined || !delivery.hasEvent)
          broken(`the send ${deed.key} was answered, and ${deed.messageId} is not stored`);
        answered.add(deed.messageId);
      }
      if (deed.kind === 'answered' && deed.call === 'consume')
        for (const id of deed.messageIds)
          if (!facts.deliveryOfMessage.get(id)?.intake)
            broken(`the intake of ${id} was answered and is not stored`);
      if (deed.kind === 'polled') {
        const seen = new Set(deed.deliveryIds);
        for (const delivery of facts.deliveries.values())
          if (delivery.project === deed.project && delivery.recipient === deed.recipient)
            if (delivery.seq <= deed.since && !seen.has(delivery.id)) broken(`no poll shows ${delivery.id}`);
      }
      if (deed.kind === 'found' && !deed.found)
        broken(`${deed.messageId} was answered, and its receipts are not found`);
    },
    atEnd: () => {
      const stored = new Map(
        rows('SELECT message_id, open FROM delivery').map((row) => [row.message_id, row.open]),
      );
      for (const id of answered)
        if (stored.get(id) !== (facts.deliveryOfMessage.get(id)?.open ? 1 : 0))
          broken(`${id} is not in the store`);
      for (const fault of [...rows('PRAGMA integrity_check'), ...rows('PRAGMA foreign_key_check')])
        if (fault.integrity_check !== 'ok') broken(`the store is damaged: ${JSON.stringify(fault)}`);
      for (const id of answered) {
        const delivery = facts.deliveryOfMessage.get(id);
        if (delivery === undefined || delivery.open === delivery.intake)
          broken(`${id} is neither waiting nor taken in`);
      }
    },
  };
};
