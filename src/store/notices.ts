import type { Notices } from '../ports/ringing.ts';
import type { Reservation } from '../protocol/notices.ts';
import type { HandOffState } from '../protocol/states.ts';
import { type Database, literal, type Row } from './database.ts';
import { coversOpen, isOpen } from './inbox.ts';

const columns = 'notification_id, session_root, state, step, rung_at_ms, expires_at_ms';

/** Of one session, by its ids. */
const newestCovering = `
  SELECT n.notification_id FROM reservation_cover v JOIN reservation n ON n.notification_id = v.notification_id
  WHERE v.delivery_id = :delivery AND n.session_root IN (SELECT value FROM json_each(:sessions))
  ORDER BY n.seq DESC LIMIT 1`;

/** @param now the moment, as stored times are written */
export function notices(database: Database, now: () => string): Notices {
  const reservation = (row: Row | undefined): Reservation | undefined =>
    row && reservationOf(database, row, now());
  return {
    newest: (root) =>
      reservation(
        database.get(
          `SELECT ${columns} FROM reservation WHERE session_root = ? ORDER BY seq DESC LIMIT 1`,
          root,
        ),
      ),
    newestHolding: (root) =>
      database.get(
        `SELECT ${columns} FROM (SELECT * FROM reservation WHERE session_root = :root ORDER BY seq DESC LIMIT 1) n
         WHERE ${coversOpen('n.notification_id')}`,
        { root, now: now() },
      ) as Omit<Reservation, 'covered'> | undefined,
    byId: (id) =>
      reservation(database.get(`SELECT ${columns} FROM reservation WHERE notification_id = ?`, id)),
    open: (row) => {
      database.run(
        `INSERT INTO reservation (${columns}) VALUES (?, ?, ?, ?, ?, ?)`,
        row.notification_id,
        row.session_root,
        row.state,
        row.step,
        row.rung_at_ms,
        row.expires_at_ms,
      );
    },
    cover: (notificationId, deliveryIds) => {
      for (const id of deliveryIds)
        database.run(
          'INSERT OR IGNORE INTO reservation_cover (delivery_id, notification_id) VALUES (?, ?)',
          id,
          notificationId,
        );
    },
    setEnd: (notificationId, rungAtMs, expiresAtMs) => {
      database.run(
        'UPDATE reservation SET rung_at_ms = ?, expires_at_ms = ? WHERE notification_id = ?',
        rungAtMs,
        expiresAtMs,
        notificationId,
      );
    },
    setState: (notificationId, state) => {
      database.run('UPDATE reservation SET state = ? WHERE notification_id = ?', state, notificationId);
    },
    ...ringing(database),
    ...telling(database),
    handOffOf: (deliveryId) => {
      const row = database.get(
        `SELECT n.state, v.rung FROM reservation_cover v JOIN reservation n ON n.notification_id = v.notification_id
         WHERE v.delivery_id = ? ORDER BY n.seq DESC LIMIT 1`,
        deliveryId,
      );
      if (row === undefined) return undefined;
      return row.rung === 1 || row.state === 'delivery_failed' ? (row.state as HandOffState) : 'preparing';
    },
    covering: (deliveryId, sessionIds) =>
      database.get(newestCovering, { delivery: deliveryId, sessions: JSON.stringify(sessionIds) })
        ?.notification_id as string | undefined,
  };
}

/** What a ring says of what it covers. */
function ringing(
  database: Database,
): Pick<
  Notices,
  'fail' | 'markRung' | 'markPushed' | 'rings' | 'unanswered' | 'isRung' | 'setReceipt' | 'receiptOf'
> {
  return {
    setReceipt: (notificationId, receipt) => {
      database.run('UPDATE reservation SET receipt = ? WHERE notification_id = ?', receipt, notificationId);
    },
    receiptOf: (notificationId) => {
      const row = database.get('SELECT receipt FROM reservation WHERE notification_id = ?', notificationId);
      return typeof row?.receipt === 'string' ? row.receipt : undefined;
    },
    fail: (deliveryId, sessionIds) => {
      database.run(
        `UPDATE reservation SET state = 'delivery_failed' WHERE state = 'preparing' AND notification_id = (${newestCovering})`,
        { delivery: deliveryId, sessions: JSON.stringify(sessionIds) },
      );
    },
    markRung: (notificationId, deliveryIds) => {
      const ids = deliveryIds === undefined ? null : JSON.stringify(deliveryIds);
      database.run(
        `UPDATE reservation_cover SET rung = 1
         WHERE notification_id = :id AND (:ids IS NULL OR delivery_id IN (SELECT value FROM json_each(:ids)))`,
        { id: notificationId, ids },
      );
    },
    markPushed: (deliveryId, sessionIds) => {
      const of = { delivery: deliveryId, sessions: JSON.stringify(sessionIds) };
      database.run(
        `UPDATE reservation_cover SET rung = 1 WHERE delivery_id = :delivery AND notification_id = (${newestCovering})`,
        of,
      );
      database.run(
        `UPDATE reservation SET state = 'notification_sent' WHERE state = 'preparing' AND notification_id = (${newestCovering})`,
        of,
      );
    },
    rings: (root, count) =>
      database
        .all(
          `SELECT rung_at_ms FROM reservation n WHERE session_root = ? AND EXISTS
             (SELECT 1 FROM reservation_cover v WHERE v.notification_id = n.notification_id AND v.rung = 1)
           ORDER BY seq DESC LIMIT ?`,
          root,
          count,
        )
        .map((row) => row.rung_at_ms as number),
    unanswered: (notificationId, count) => {
      const before = database.all(
        `SELECT n.state = 'notification_sent' AND NOT EXISTS
           (SELECT 1 FROM reservation_cover v JOIN receipt r ON r.delivery_id = v.delivery_id
            WHERE v.notification_id = n.notification_id AND r.receipt_kind = 'intake') AS unanswered
         FROM reservation n JOIN reservation this ON this.notification_id = ?
         WHERE n.session_root = this.session_root AND n.seq < this.seq ORDER BY n.seq DESC LIMIT ${literal(count)}`,
        notificationId,
      );
      const answered = before.findIndex((row) => row.unanswered !== 1);
      return answered === -1 ? before.length : answered;
    },
    isRung: (notificationId, deliveryId) =>
      database.get(
        'SELECT rung FROM reservation_cover WHERE notification_id = ? AND delivery_id = ?',
        notificationId,
        deliveryId,
      )?.rung === 1,
  };
}

const those = 'notification_id = :id AND delivery_id IN (SELECT value FROM json_each(:ids))';
const of = (id: string, deliveryIds: readonly string[]) => ({ id, ids: JSON.stringify(deliveryIds) });

/** What a host is told of by another road than a row. */
function telling(database: Database): Pick<Notices, 'markTold' | 'takeBackTold' | 'coverOf' | 'uncover'> {
  return {
    markTold: (notificationId, deliveryIds) => {
      database.run(`UPDATE reservation_cover SET told = 1 WHERE ${those}`, of(notificationId, deliveryIds));
    },
    takeBackTold: (notificationId, deliveryIds) => {
      database.run(`UPDATE reservation_cover SET told = 0 WHERE ${those}`, of(notificationId, deliveryIds));
    },
    coverOf: (notificationId, deliveryIds) =>
      database
        .all(
          `SELECT delivery_id, told FROM reservation_cover WHERE ${those}`,
          of(notificationId, deliveryIds),
        )
        .map(({ delivery_id, told }) => ({ delivery_id: delivery_id as string, told: told === 1 })),
    uncover: (notificationId, deliveryIds) => {
      database.run(
        `DELETE FROM reservation_cover WHERE rung = 0 AND ${those}`,
        of(notificationId, deliveryIds),
      );
      database.run(
        `DELETE FROM reservation WHERE notification_id = :id AND NOT EXISTS
           (SELECT 1 FROM reservation_cover v WHERE v.notification_id = :id)`,
        { id: notificationId },
      );
    },
  };
}

/** With what it covers that still waits. */
function reservationOf(database: Database, row: Row, now: string): Reservation {
  const covered = database
    .all(
      `SELECT v.delivery_id FROM reservation_cover v JOIN delivery d ON d.delivery_id = v.delivery_id
       WHERE v.notification_id = :id AND ${isOpen} ORDER BY d.seq`,
      { id: row.notification_id as string, now },
    )
    .map((cover) => cover.delivery_id as string);
  return { ...(row as unknown as Omit<Reservation, 'covered'>), covered };
}
