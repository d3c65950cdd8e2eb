// Which deliveries belong to an inbox, and which of them still wait: the same words for every query.

import type { Inbox } from '../ports/mail.ts';

/** Of a delivery `d`, with `parametersOf`: never one that went to another machine. */
export const mine = `(d.peer_key IS NULL AND (
  (d.target_kind = 'principal' AND d.intended_session IS NULL
    AND d.recipient IN (SELECT value FROM json_each(:principals)))
  OR (d.target_kind = 'principal' AND d.intended_session IN (SELECT value FROM json_each(:intended))
    AND (:named = 0 OR d.recipient IN (SELECT value FROM json_each(:principals))))
  OR (d.target_kind = 'session' AND d.recipient IN (SELECT value FROM json_each(:targets)))))`;

export const parametersOf = (inbox: Inbox) => ({
  project: inbox.project,
  principals: JSON.stringify(inbox.principals),
  targets: JSON.stringify(inbox.targets),
  intended: JSON.stringify(inbox.intended),
  named: inbox.named ? 1 : 0,
});

/**
 * Of a delivery `d`, at the moment `:now`. `open`, which ends in the transaction that writes the intake or the
 * supersession, is what a partial index is over.
 */
export const isOpen = '(d.open = 1 AND (d.expires_at IS NULL OR d.expires_at > :now))';

/** Of the reservation whose id is the column `id`: whether it covers anything that still waits, at the moment `:now`. */
export const coversOpen = (id: string): string => `EXISTS (
  SELECT 1 FROM reservation_cover v JOIN delivery d ON d.delivery_id = v.delivery_id
  WHERE v.notification_id = ${id} AND ${isOpen})`;

/** Of a message `m`: progress, sent quiet, or held by the loop guard. */
export const needsNoTurn = `(m.status IS 'update' OR m.quiet = 1 OR m.held = 1)`;

/** It also asks the facts, so that a damaged store is an error and never an empty inbox. */
export const stillWaits = `${isOpen}
  AND NOT EXISTS (SELECT 1 FROM receipt r WHERE r.delivery_id = d.delivery_id AND r.receipt_kind = 'intake')`;

/** Projects that have open mail, one seek in the partial index each. */
export const openProjects = `
  WITH RECURSIVE p (project) AS (
    SELECT min(project) FROM delivery WHERE open = 1
    UNION ALL
    SELECT (SELECT min(project) FROM delivery WHERE open = 1 AND project > p.project) FROM p WHERE p.project IS NOT NULL)
  SELECT project FROM p WHERE project IS NOT NULL`;
