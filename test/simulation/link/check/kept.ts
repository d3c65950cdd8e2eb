// What a caller was answered stands, whatever dies afterwards: that a message was taken, that a stranger was admitted and will be told
// so, that mail was read.

import type { Deed, MakeLinkChecker } from '../checker.ts';
import type { Machine } from '../machine.ts';

const kept = new Set(['message', 'delivery', 'outbox', 'receipt', 'event', 'idempotency']);
/** From the commit to the answer. */
const answeredMs = 60_000;

export const answeredIsKept: MakeLinkChecker = (world, broken) => {
  const promises: { machine: Machine; deed: Deed }[] = [];
  /** When a confirmation was last handed to a relay. */
  const confirmed = new Map<string, number>();
  const untrusted = new Set<string>();

  const stands = (machine: Machine, deed: Deed): boolean => {
    const { disk } = machine;
    const has = (sql: string, id: string): boolean => disk.get(sql, id) !== undefined;
    const fact = (id: string, kind: string): boolean =>
      has(
        `SELECT 1 AS found FROM receipt r JOIN delivery d ON d.delivery_id = r.delivery_id
         WHERE d.message_id = ? AND r.receipt_kind = '${kind}'`,
        id,
      );
    if (deed.kind === 'sent')
      return has(
        'SELECT 1 AS found FROM outbox o JOIN message USING (message_id) WHERE message_id = ?',
        deed.messageId,
      );
    if (deed.kind === 'read') return deed.messageIds.every((id) => fact(id, 'intake') && fact(id, 'ack'));
    if (deed.kind === 'disposed') return fact(deed.messageId, 'disposition');
    if (deed.kind !== 'accepted') return true;
    return machine.trusts(deed.key) || untrusted.has(`${machine.name} ${deed.key}`);
  };

  const willBeTold = (machine: Machine, key: string): boolean =>
    untrusted.has(`${machine.name} ${key}`) ||
    world.elapsedMs - (confirmed.get(`${machine.name} ${key}`) ?? Number.NEGATIVE_INFINITY) < answeredMs ||
    machine.disk.get(
      `SELECT 1 AS found FROM control_job WHERE kind = 'pair_accept' AND peer_key = ? AND next_ms IS NOT NULL`,
      key,
    ) !== undefined;

  return {
    name: 'what was answered is kept',
    onCommit: (machine, changes) => {
      for (const { table, before, after } of changes)
        if (after === undefined && kept.has(table))
          broken(`a row of ${table} was deleted at ${machine.name}: ${JSON.stringify(before)}`);
    },
    onPost: ({ machine, to, header }) => {
      if (header.type === 'pair_accept') confirmed.set(`${machine.name} ${to}`, world.elapsedMs);
    },
    onDeed: (machine, deed) => {
      if (deed.kind === 'trusts') untrusted.delete(`${machine.name} ${deed.key}`);
      if (deed.kind === 'trusts no more') untrusted.add(`${machine.name} ${deed.key}`);
      promises.push({ machine, deed });
      if (!stands(machine, deed))
        broken(`${machine.name} was answered ${JSON.stringify(deed)}, and it is not so`);
      if (deed.kind === 'accepted' && !willBeTold(machine, deed.key))
        broken(`${machine.name} admitted a key, and no confirmation is on its way`);
    },
    atEnd: () => {
      for (const { machine, deed } of promises)
        if (!stands(machine, deed))
          broken(`${machine.name} was answered ${JSON.stringify(deed)}, and it is gone`);
      for (const { name, disk } of world.machines)
        for (const fault of [...disk.all('PRAGMA integrity_check'), ...disk.all('PRAGMA foreign_key_check')])
          if (fault.integrity_check !== 'ok')
            broken(`the store of ${name} is damaged: ${JSON.stringify(fault)}`);
    },
  };
};
