// Tasks: within one scope (sender, sender session, task, inbox) a newer update makes older ones obsolete, and an end all
// of them, whenever they come.

import type { ProgressMarker, Tasks } from '../ports/mail.ts';
import type { Message } from '../protocol/message.ts';
import type { Database } from './database.ts';

const sameScope = `m.sender = :sender AND m.task_id = :task_id
  AND (m.caller_session IS :session OR m.caller_session IN (SELECT value FROM json_each(:sessions)))
  AND m.peer_key IS :from_key AND m.origin_session IS :origin_session AND d.peer_key IS NULL
  AND d.project = :project AND d.recipient = :recipient AND d.target_kind = :target_kind
  AND d.intended_session IS :intended_session`;

const inScope = `FROM message m JOIN delivery d ON d.message_id = m.message_id WHERE ${sameScope}`;

const endOfTask = `SELECT m.message_id ${inScope} AND m.message_id <> :message_id AND m.status IN ('result', 'failed', 'canceled')
  ORDER BY m.seq LIMIT 1`;

/** At equal times the later arrival wins, so only a later time beats a message that has just arrived. */
const newerUpdate = `
  SELECT m.message_id ${inScope} AND m.message_id <> :message_id AND m.status = 'update' AND m.created_at > :created_at
  ORDER BY m.created_at DESC, m.seq DESC LIMIT 1`;

const endOthers = `
  UPDATE delivery SET superseded_by = :newest, open = 0
  WHERE superseded_by IS NULL AND message_id <> :newest AND delivery_id IN (
    SELECT d.delivery_id ${inScope} AND m.status = 'update')`;

export function tasks(database: Database): Tasks {
  return {
    supersede: (message, sessions) => supersede(database, message, sessions),
    mark: (row) => {
      database.run(
        `INSERT OR REPLACE INTO progress_marker (session_root, project, principal_id, task_id, since_ms)
         VALUES (:session_root, :project, :principal_id, :task_id, :since_ms)`,
        { ...row },
      );
    },
    clear: (of) => {
      if ('session_root' in of)
        database.run(
          'DELETE FROM progress_marker WHERE session_root = ? AND task_id = coalesce(?, task_id)',
          of.session_root,
          of.task_id ?? null,
        );
      else
        database.run(
          `DELETE FROM progress_marker WHERE project = :project AND task_id = :task_id
             AND iif(:target_kind = 'session', session_root, principal_id) = :recipient`,
          { ...of },
        );
    },
    restart: (root, sinceMs) => {
      database.run('UPDATE progress_marker SET since_ms = ? WHERE session_root = ?', sinceMs, root);
    },
    marker: (root) =>
      database.get(
        'SELECT session_root, project, principal_id, task_id, since_ms FROM progress_marker WHERE session_root = ?',
        root,
      ) as ProgressMarker | undefined,
  };
}

function supersede(database: Database, message: Message, sessions: readonly string[]): void {
  const { message_id, sender, task_id, project, recipient, target_kind, created_at } = message;
  // What goes to another machine is made obsolete there.
  if (
    message.peer !== undefined ||
    task_id === undefined ||
    message.status === undefined ||
    message.status === 'needs_input'
  )
    return;
  const scope = {
    sender,
    task_id,
    session: message.provenance.session ?? null,
    from_key: message.origin?.sender_key ?? null,
    origin_session: message.origin?.return_route?.session ?? null,
    sessions: JSON.stringify(sessions),
    project,
    recipient,
    target_kind,
    intended_session: message.intended_session ?? null,
  };
  const than = { ...scope, message_id };
  const newer =
    message.status === 'update'
      ? (database.get(endOfTask, than) ?? database.get(newerUpdate, { ...than, created_at }))
      : undefined;
  database.run(endOthers, { ...scope, newest: (newer?.message_id as string | undefined) ?? message_id });
}
