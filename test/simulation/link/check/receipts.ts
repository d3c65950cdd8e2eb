// A sender is told nothing that its receiver's store did not record first, and nothing by any other key than the one that the message
// went to.

import type { Row } from '../../../../src/store/database.ts';
import type { MakeLinkChecker } from '../checker.ts';
import type { Machine } from '../machine.ts';
import { receivedAs } from './stored.ts';

export const noReceiptWithoutItsFact: MakeLinkChecker = ({ machines }, broken) => {
  /** Refusals that a machine recorded to tell: of what it refused, nothing else is kept. */
  const refusals = new Set<string>();

  const isRecorded = (receiver: Machine, { message_id }: Row, { receipt_kind, value }: Row): boolean =>
    receipt_kind === 'stored' ||
    receiver.disk.get(
      `SELECT 1 AS found FROM receipt r JOIN delivery d ON d.delivery_id = r.delivery_id
       WHERE d.message_id = ? AND r.receipt_kind = ? AND r.value = ? AND r.source = 'receipt'`,
      message_id as string,
      receipt_kind as string,
      value as string,
    ) !== undefined;

  const check = (sender: Machine, receipt: Row): void => {
    const sent = sender.disk.get(
      'SELECT o.* FROM outbox o JOIN delivery d ON d.message_id = o.message_id WHERE d.delivery_id = ?',
      receipt.delivery_id as string,
    );
    const { receipt_kind, value, peer_key } = receipt;
    const what = `${receipt_kind} ${value} of ${sent?.message_id} at ${sender.name}`;
    const receiver = machines.find(({ key }) => key === peer_key);
    if (sent === undefined || receiver === undefined || sent.peer_key !== peer_key) {
      broken(`${what} is told by a key that it was not sent to`);
      return;
    }
    if (receipt_kind === 'refused') {
      if (!refusals.has(`${receiver.name} ${sent.wire_id} ${value}`)) broken(`${what} was never refused`);
      return;
    }
    const stored = receivedAs(receiver, sender.key, sent.wire_id);
    if (stored === undefined || !isRecorded(receiver, stored, receipt))
      broken(`${what} is told, and ${receiver.name} recorded no such thing`);
  };

  return {
    name: 'no receipt without its fact',
    onCommit: (machine, changes) => {
      for (const { table, before, after } of changes) {
        if (before !== undefined || after === undefined) continue;
        if (table === 'receipt_out' && after.fact === 'refused')
          refusals.add(`${machine.name} ${after.wire_id} ${after.detail}`);
        if (table === 'receipt' && after.source === 'peer') check(machine, after);
      }
    },
  };
};
