// The one answer to what waits, for inbox and notifier. `delivery.open`, which ends in the transaction that writes the
// intake, narrows the search to a partial index; the intake facts are asked all the same, so that a damaged store is an
// error and never an empty inbox.

import type { Inbox, Waiting } from '../ports/store.ts';
import { type Database, literal } from './database.ts';
import { messageColumns, messageOf, messageTables } from './messages.ts';

const mine = `(
  (d.target_kind = 'principal' AND d.recipient IN (SELECT value FROM json_each(:principals))
    AND (d.intended_session IS NULL OR d.intended_session IN (SELECT value FROM json_each(:intended))))
  OR (d.target_kind = 'session' AND d.recipient IN (SELECT value FROM json_each(:targets))))`;

const stillWaits = `d.open = 1
  AND NOT EXISTS (SELECT 1 FROM receipt r WHERE r.delivery_id = d.delivery_id AND r.receipt_kind = 'intake')`;

const needsNoTurn = `(m.status IS 'update' OR m.quiet = 1)`;

const parameters = (inbox: Inbox) => ({
  project: inbox.project,
  principals: JSON.stringify(inbox.principals),
  targets: JSON.stringify(inbox.targets),
  intended: JSON.stringify(inbox.intended),
});

export function waiting(database: Database): Waiting {
  return {
    list: (inbox, count) =>
      database
        .all(
          `SELECT ${messageColumns} FROM ${messageTables}
           WHERE d.project = :project AND ${mine} AND ${stillWaits}
           ORDER BY ${needsNoTurn}, d.seq LIMIT ${literal(count)}`,
          parameters(inbox),
        )
        .map(messageOf),
    inboxes: (count) =>
      database.all(
        `SELECT d.recipient, d.project, count(*) AS waiting FROM delivery d WHERE d.open = 1
         GROUP BY d.project, d.recipient ORDER BY waiting DESC, d.recipient LIMIT ?`,
        count,
      ) as unknown as { recipient: string; project: string; waiting: number }[],
    counts: (inbox) => {
      const row = database.get(
        `SELECT count(*) AS waiting, coalesce(sum(${needsNoTurn}), 0) AS progress
         FROM delivery d JOIN message m ON m.message_id = d.message_id
         WHERE d.project = :project AND ${mine} AND ${stillWaits}`,
        parameters(inbox),
      );
      const progress = row?.progress as number;
      return { unread: (row?.waiting as number) - progress, progress };
    },
    among: (inbox, messageIds) =>
      database
        .all(
          `SELECT ${messageColumns} FROM ${messageTables}
           WHERE d.project = :project AND ${mine} AND d.message_id IN (SELECT value FROM json_each(:messageIds)) ORDER BY d.seq`,
          { ...parameters(inbox), messageIds: JSON.stringify(messageIds) },
        )
        .map(messageOf),
  };
}
