// What waits for somebody in whatever project: what hooks remind of. The same words decide as for an inbox.

import type { Reminders } from '../ports/mail.ts';
import { type Database, literal } from './database.ts';
import { needsNoTurn, openProjects, stillWaits } from './inbox.ts';

/** Deliveries `d`, each with its message `m`, for one of `:principals`, meant for `:intended`, or to one of `:targets` in its project. */
const reached = `(${openProjects}) o
  CROSS JOIN delivery d ON d.project = o.project AND (
    (d.target_kind = 'principal' AND d.intended_session IS NULL
      AND d.recipient IN (SELECT value FROM json_each(:principals)))
    OR (d.target_kind = 'principal' AND d.intended_session IN (SELECT value FROM json_each(:intended)))
    OR (d.target_kind = 'session'
      AND d.recipient IN (SELECT t.value ->> 1 FROM json_each(:targets) t WHERE t.value ->> 0 = o.project)))
  JOIN message m ON m.message_id = d.message_id
  WHERE ${stillWaits} AND NOT EXISTS (
    SELECT 1 FROM host_accept h JOIN attempt a ON a.attempt_id = h.attempt_id
    JOIN connection c ON c.connection_id = a.connection_id
    WHERE h.delivery_id = d.delivery_id AND h.content <> 'notice' AND c.disconnected_at IS NULL
      AND c.lease_expires_at_ms > :nowMs AND c.session_id IN (SELECT value FROM json_each(:pushedTo)))`;

/** Seeks in the index of events, however many there are. */
const everAddressed = `
  WITH RECURSIVE p (project) AS (
    SELECT min(project) FROM event
    UNION ALL
    SELECT (SELECT min(project) FROM event WHERE project > p.project) FROM p WHERE p.project IS NOT NULL)
  SELECT 1 FROM p JOIN event e ON e.project = p.project AND e.recipient IN (SELECT value FROM json_each(?))
    AND e.event_kind = 'message_available' LIMIT 1`;

/** @param now the moment, as stored times are written */
export function reminders(database: Database, now: () => string): Reminders {
  const parametersOf = (of: Parameters<Reminders['groups']>[0]) => ({
    principals: JSON.stringify(of.principals),
    intended: JSON.stringify(of.intended),
    targets: JSON.stringify(of.targets),
    now: now(),
    nowMs: Date.parse(now()),
    pushedTo: JSON.stringify(of.pushedTo ?? []),
  });
  return {
    groups: (of) =>
      database
        .all(
          `SELECT d.project, CASE d.target_kind WHEN 'session' THEN d.recipient END AS session,
             sum(NOT ${needsNoTurn}) AS unread, sum(${needsNoTurn}) AS progress
           FROM ${reached} GROUP BY 1, 2 ORDER BY 1, 2`,
          parametersOf(of),
        )
        .map(({ project, session, unread, progress }) => ({
          project: project as string,
          ...(session !== null && { session: session as string }),
          unread: unread as number,
          progress: progress as number,
        })),
    page: (of, after, count) =>
      database.all(
        `SELECT d.seq, d.delivery_id, d.message_id, d.project FROM ${reached} AND NOT ${needsNoTurn} AND d.seq > :after
         ORDER BY d.seq LIMIT ${literal(count)}`,
        { ...parametersOf(of), after },
      ) as unknown as ReturnType<Reminders['page']>,
    everSeen: (names) =>
      database.get(
        'SELECT 1 FROM principal WHERE principal_id IN (SELECT value FROM json_each(?)) LIMIT 1',
        JSON.stringify(names),
      ) !== undefined || database.get(everAddressed, JSON.stringify(names)) !== undefined,
  };
}
