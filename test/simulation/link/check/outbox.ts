// What is on its way ends by its receiver's receipt, by expiry, by hand, with its peer, or where no relay will ever take it; what has
// ended goes out no more.

import type { Row } from '../../../../src/store/database.ts';
import type { Change } from '../../disk.ts';
import type { MakeLinkChecker } from '../checker.ts';
import type { Machine } from '../machine.ts';

const unknownQueueMs = 604_800_000;

export const anEntryEndsForAReason: MakeLinkChecker = (_, broken) => {
  const discarded = new Set<string>();
  const removed = new Set<string>();

  const isReason = (machine: Machine, entry: Row, { source, receipt_kind, value }: Row): boolean => {
    const nowMs = machine.nowMs();
    if (source === 'peer')
      return receipt_kind === 'stored' || (receipt_kind === 'refused' && value !== 'stale');
    if (source !== 'outbox') return false;
    if (receipt_kind === 'expired') return nowMs >= (entry.expires_ms as number);
    if (receipt_kind !== 'refused') return false;
    if (value === 'discarded') return discarded.has(entry.message_id as string);
    if (value === 'peer_removed') return removed.has(`${machine.name} ${entry.peer_key}`);
    const row = machine.disk.get(
      'SELECT created_at FROM message WHERE message_id = ?',
      entry.message_id as string,
    );
    return value === 'relay_refused' && nowMs - Date.parse(row?.created_at as string) >= unknownQueueMs;
  };

  const ended = (machine: Machine, entry: Row, changes: readonly Change[]): void => {
    const delivery = machine.disk.get(
      'SELECT delivery_id FROM delivery WHERE message_id = ?',
      entry.message_id as string,
    );
    const facts = changes.flatMap(({ table, before, after }) =>
      table === 'receipt' && before === undefined && after?.delivery_id === delivery?.delivery_id
        ? [after as Row]
        : [],
    );
    if (!facts.some((fact) => isReason(machine, entry, fact)))
      broken(`${entry.message_id} at ${machine.name} ended for no reason: ${JSON.stringify(facts)}`);
  };

  return {
    name: 'an entry ends for a reason, and goes out no more',
    onCommit: (machine, changes) => {
      for (const { table, before, after } of changes) {
        if (table !== 'outbox' || before === undefined || after === undefined) continue;
        if (before.ended_at === null && after.ended_at !== null) ended(machine, after, changes);
        if (before.ended_at !== null && after.ended_at !== before.ended_at)
          broken(`${after.message_id} at ${machine.name} had ended`);
      }
    },
    onPost: ({ machine, header, to }) => {
      if (header.type !== 'message') return;
      const entry = machine.disk.get('SELECT * FROM outbox WHERE wire_id = ?', header.id);
      if (entry === undefined || entry.peer_key !== to)
        broken(`${machine.name} posts ${header.id}, which is not on its way there`);
      else if (entry.ended_at !== null) broken(`${machine.name} posts ${entry.message_id}, which has ended`);
      else if ((entry.expires_ms as number) <= machine.nowMs())
        broken(`${machine.name} posts ${entry.message_id}, which has expired`);
    },
    onDeed: (machine, deed) => {
      if (deed.kind === 'discarding') discarded.add(deed.messageId);
      if (deed.kind === 'trusts no more') removed.add(`${machine.name} ${deed.key}`);
    },
  };
};
