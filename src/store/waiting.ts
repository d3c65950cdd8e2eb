// The one answer to what waits, for inbox, notifier, router and view. `delivery.open` narrows the search to a partial
// index; an inbox asks the intake facts all the same, so that a damaged store is an error and never an empty inbox.

import type { Waiting } from '../ports/mail.ts';
import { type Database, literal } from './database.ts';
import { isOpen, mine, needsNoTurn, openProjects, parametersOf, stillWaits } from './inbox.ts';
import { instantOf } from './instant.ts';
import { messageColumns, messageOf, messageTables, storedColumns, storedOf } from './messages.ts';

/** @param now the moment, as stored times are written */
export function waiting(database: Database, now: () => string): Waiting {
  return {
    list: (inbox, count) =>
      database
        .all(
          `SELECT ${storedColumns} FROM ${messageTables}
           WHERE d.project = :project AND ${mine} AND ${stillWaits}
           ORDER BY ${needsNoTurn}, d.seq LIMIT ${literal(count)}`,
          { ...parametersOf(inbox), now: now() },
        )
        .map((row) => storedOf(row, now())),
    worthy: (inbox) =>
      database
        .all(
          `SELECT d.delivery_id, m.created_at FROM delivery d JOIN message m ON m.message_id = d.message_id
           WHERE d.project = :project AND ${mine} AND ${stillWaits} AND NOT ${needsNoTurn} ORDER BY d.seq`,
          { ...parametersOf(inbox), now: now() },
        )
        .map((row) => ({
          delivery_id: row.delivery_id as string,
          created_at: instantOf(row.created_at as string),
        })),
    inboxes: (count) =>
      database.all(
        `SELECT d.recipient, d.project, count(*) AS waiting FROM delivery d WHERE ${isOpen}
         GROUP BY d.project, d.recipient ORDER BY waiting DESC, d.recipient LIMIT :count`,
        { now: now(), count },
      ) as unknown as { recipient: string; project: string; waiting: number }[],
    counts: (inbox) => {
      const row = database.get(
        `SELECT count(*) AS waiting, coalesce(sum(${needsNoTurn}), 0) AS progress
         FROM delivery d JOIN message m ON m.message_id = d.message_id
         WHERE d.project = :project AND ${mine} AND ${stillWaits}`,
        { ...parametersOf(inbox), now: now() },
      );
      const progress = row?.progress as number;
      return { unread: (row?.waiting as number) - progress, progress };
    },
    among: (inbox, messageIds) =>
      database
        .all(
          `SELECT ${messageColumns} FROM ${messageTables}
           WHERE d.project = :project AND ${mine} AND d.message_id IN (SELECT value FROM json_each(:messageIds)) ORDER BY d.seq`,
          { ...parametersOf(inbox), messageIds: JSON.stringify(messageIds) },
        )
        .map(messageOf),
    ...beyond(database, now),
  };
}

/** Waiting mail beyond one inbox: of other projects, and of what a registration may be handed. */
function beyond(database: Database, now: () => string): Pick<Waiting, 'elsewhere' | 'undelivered'> {
  return {
    elsewhere: (inbox, count) =>
      database.all(
        `SELECT d.project, count(*) AS waiting FROM (${openProjects}) o
         CROSS JOIN delivery d ON d.project = o.project AND d.project <> :project AND d.target_kind = 'principal'
           AND d.recipient IN (SELECT value FROM json_each(:principals))
         JOIN message m ON m.message_id = d.message_id
         WHERE ${stillWaits} AND NOT ${needsNoTurn}
           AND (d.intended_session IS NULL OR d.intended_session IN (SELECT value FROM json_each(:intended)))
         GROUP BY d.project ORDER BY waiting DESC, d.project LIMIT :count`,
        {
          project: inbox.project,
          principals: JSON.stringify(inbox.principals),
          intended: JSON.stringify(inbox.intended),
          now: now(),
          count,
        },
      ) as unknown as { project: string; waiting: number }[],
    undelivered: ({ project, principals, sessions, after, through, count }) =>
      database.all(
        `SELECT d.delivery_id, e.seq AS event_seq FROM ${messageTables}
         WHERE d.project = :project AND d.target_kind = 'principal'
           AND ((d.intended_session IS NULL AND d.recipient IN (SELECT value FROM json_each(:principals)))
             OR d.intended_session IN (SELECT value FROM json_each(:sessions)))
           AND e.seq > :after AND e.seq <= :through AND ${stillWaits} AND NOT ${needsNoTurn}
           AND NOT EXISTS (SELECT 1 FROM host_accept h WHERE h.delivery_id = d.delivery_id)
         ORDER BY e.seq LIMIT :count`,
        {
          project,
          principals: JSON.stringify(principals),
          sessions: JSON.stringify(sessions),
          after,
          through,
          now: now(),
          count,
        },
      ) as unknown as { delivery_id: string; event_seq: number }[],
  };
}
