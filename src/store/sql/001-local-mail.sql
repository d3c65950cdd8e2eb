-- Migration 1: local mail. Facts are only ever added; `delivery.open` is the one summary kept beside them, so that
-- the inbox of a session is found by a partial index however many messages were consumed (69 us at 1e6 stored).

CREATE TABLE message (
  seq             INTEGER PRIMARY KEY,
  message_id      TEXT NOT NULL UNIQUE,
  project         TEXT NOT NULL,
  sender          TEXT NOT NULL,
  content_type    TEXT NOT NULL,
  privacy         TEXT NOT NULL,
  correlation_id  TEXT,
  reply_to        TEXT,
  task_id         TEXT,
  status          TEXT,
  quiet           INTEGER NOT NULL DEFAULT 0,
  created_at      TEXT NOT NULL,
  transport       TEXT NOT NULL,
  source_host     TEXT NOT NULL,
  caller_session  TEXT,
  payload         TEXT NOT NULL,
  payload_sha256  TEXT NOT NULL
) STRICT;

CREATE TABLE delivery (
  seq               INTEGER PRIMARY KEY,
  delivery_id       TEXT NOT NULL UNIQUE,
  message_id        TEXT NOT NULL REFERENCES message (message_id),
  project           TEXT NOT NULL,
  recipient         TEXT NOT NULL,
  target_kind       TEXT NOT NULL CHECK (target_kind IN ('principal', 'session')),
  intended_session  TEXT,
  open              INTEGER NOT NULL DEFAULT 1,
  UNIQUE (message_id, recipient)
) STRICT;
CREATE INDEX delivery_waiting ON delivery (project, target_kind, recipient, seq) WHERE open = 1;

CREATE TABLE event (
  seq          INTEGER PRIMARY KEY AUTOINCREMENT,
  event_id     TEXT NOT NULL UNIQUE,
  event_kind   TEXT NOT NULL,
  message_id   TEXT NOT NULL REFERENCES message (message_id),
  delivery_id  TEXT NOT NULL REFERENCES delivery (delivery_id),
  project      TEXT NOT NULL,
  recipient    TEXT NOT NULL,
  target_kind  TEXT NOT NULL,
  created_at   TEXT NOT NULL
) STRICT;
CREATE INDEX event_scope ON event (project, recipient, seq);
CREATE INDEX event_delivery ON event (delivery_id);

CREATE TABLE idempotency (
  project          TEXT NOT NULL,
  sender           TEXT NOT NULL,
  idempotency_key  TEXT NOT NULL,
  content_sha256   TEXT NOT NULL,
  message_id       TEXT NOT NULL REFERENCES message (message_id),
  PRIMARY KEY (project, sender, idempotency_key)
) STRICT;

CREATE TABLE cursor (
  token      TEXT PRIMARY KEY,
  project    TEXT NOT NULL,
  recipient  TEXT NOT NULL,
  position   INTEGER NOT NULL,
  UNIQUE (project, recipient, position)
) STRICT;

CREATE TABLE receipt (
  seq              INTEGER PRIMARY KEY,
  receipt_id       TEXT NOT NULL UNIQUE,
  delivery_id      TEXT NOT NULL REFERENCES delivery (delivery_id),
  receipt_kind     TEXT NOT NULL,
  idempotency_key  TEXT NOT NULL,
  value            TEXT NOT NULL,
  actor            TEXT NOT NULL,
  caller_session   TEXT,
  host_accept_id   TEXT,
  recorded_at      TEXT NOT NULL,
  UNIQUE (delivery_id, receipt_kind, idempotency_key)
) STRICT;

-- A recipient is known to a project from its first registration on; what was sent before is not handed over.
CREATE TABLE principal (
  project                TEXT NOT NULL,
  principal_id           TEXT NOT NULL,
  activation_checkpoint  INTEGER NOT NULL,
  PRIMARY KEY (project, principal_id)
) STRICT;

CREATE TABLE session (
  project       TEXT NOT NULL,
  session_id    TEXT NOT NULL,
  principal_id  TEXT NOT NULL,
  adapter_kind  TEXT NOT NULL,
  bell          TEXT NOT NULL,
  host_kind     TEXT NOT NULL,
  work_summary  TEXT,
  generation    INTEGER NOT NULL,
  PRIMARY KEY (project, session_id)
) STRICT;
CREATE INDEX session_principal ON session (project, principal_id);
CREATE INDEX session_id ON session (session_id);

CREATE TABLE connection (
  seq                  INTEGER PRIMARY KEY,
  connection_id        TEXT NOT NULL UNIQUE,
  project              TEXT NOT NULL,
  session_id           TEXT NOT NULL,
  generation           INTEGER NOT NULL,
  principal_id         TEXT NOT NULL,
  adapter_kind         TEXT NOT NULL,
  bell                 TEXT NOT NULL,
  router_instance      TEXT NOT NULL,
  lease_expires_at_ms  INTEGER NOT NULL,
  connected_at         TEXT NOT NULL,
  disconnected_at      TEXT,
  disconnect_reason    TEXT,
  UNIQUE (project, session_id, generation)
) STRICT;
CREATE INDEX connection_open ON connection (project, session_id) WHERE disconnected_at IS NULL;
CREATE INDEX connection_principal ON connection (principal_id, project, session_id);

CREATE TABLE presence (
  seq            INTEGER PRIMARY KEY,
  connection_id  TEXT NOT NULL REFERENCES connection (connection_id),
  transition     TEXT NOT NULL,
  reason         TEXT,
  recorded_at    TEXT NOT NULL
) STRICT;

CREATE TABLE attempt (
  seq             INTEGER PRIMARY KEY,
  attempt_id      TEXT NOT NULL UNIQUE,
  delivery_id     TEXT NOT NULL REFERENCES delivery (delivery_id),
  attempt_number  INTEGER NOT NULL,
  connection_id   TEXT NOT NULL REFERENCES connection (connection_id),
  router_instance TEXT NOT NULL,
  state           TEXT NOT NULL,
  failure_code    TEXT,
  started_at      TEXT NOT NULL,
  finished_at     TEXT,
  UNIQUE (delivery_id, attempt_number)
) STRICT;
CREATE INDEX attempt_unfinished ON attempt (connection_id) WHERE state = 'started';

CREATE TABLE host_accept (
  seq             INTEGER PRIMARY KEY,
  host_accept_id  TEXT NOT NULL UNIQUE,
  delivery_id     TEXT NOT NULL UNIQUE REFERENCES delivery (delivery_id),
  attempt_id      TEXT NOT NULL UNIQUE REFERENCES attempt (attempt_id),
  content         TEXT NOT NULL,
  adapter_kind    TEXT NOT NULL,
  receipt         TEXT NOT NULL,
  accepted_at     TEXT NOT NULL
) STRICT;

-- The newest reservation of a session (by the first id of its alias chain) is the one that may be current.
CREATE TABLE reservation (
  seq              INTEGER PRIMARY KEY,
  notification_id  TEXT NOT NULL UNIQUE,
  session_root     TEXT NOT NULL,
  state            TEXT NOT NULL,
  step             INTEGER NOT NULL,
  rung_at_ms       INTEGER NOT NULL,
  expires_at_ms    INTEGER NOT NULL
) STRICT;
CREATE INDEX reservation_session ON reservation (session_root, seq);

CREATE TABLE reservation_cover (
  delivery_id      TEXT NOT NULL REFERENCES delivery (delivery_id),
  notification_id  TEXT NOT NULL REFERENCES reservation (notification_id),
  rung             INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (delivery_id, notification_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX reservation_cover_notice ON reservation_cover (notification_id);

CREATE TABLE listener_row (
  seq              INTEGER PRIMARY KEY AUTOINCREMENT,
  session_id       TEXT NOT NULL,
  notification_id  TEXT NOT NULL,
  text             TEXT NOT NULL,
  created_at       TEXT NOT NULL
) STRICT;
CREATE INDEX listener_row_session ON listener_row (session_id, seq);
CREATE INDEX listener_row_notice ON listener_row (notification_id);

CREATE TABLE listener_cursor (
  session_root  TEXT PRIMARY KEY,
  position      INTEGER NOT NULL
) STRICT;

-- Session ids of one host process across /clear: `new_id` is what became of `old_id`.
CREATE TABLE alias (
  new_id  TEXT PRIMARY KEY,
  old_id  TEXT NOT NULL
) STRICT;
CREATE INDEX alias_old ON alias (old_id);

CREATE TABLE launcher (
  pid          INTEGER PRIMARY KEY,
  start_time   TEXT NOT NULL,
  session_id   TEXT NOT NULL,
  recorded_at  TEXT NOT NULL
) STRICT;
