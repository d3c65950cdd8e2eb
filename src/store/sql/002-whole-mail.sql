-- Migration 2: the whole of local mail. Expiry and hops of a message, what superseded a delivery, receipts as events for
-- their sender, failed notices, progress markers, the runs of the router, and the payload bytes that a quota counts.

ALTER TABLE message ADD COLUMN expires_at TEXT;
ALTER TABLE message ADD COLUMN hops INTEGER NOT NULL DEFAULT 0;
-- The loop guard found that it needs no turn: as quiet as if its sender had said so.
ALTER TABLE message ADD COLUMN held INTEGER NOT NULL DEFAULT 0;
CREATE INDEX message_reply ON message (reply_to) WHERE reply_to IS NOT NULL;
CREATE INDEX message_task ON message (sender, task_id) WHERE task_id IS NOT NULL;
CREATE INDEX message_automatic_session ON message (caller_session, created_at) WHERE hops > 0;
CREATE INDEX message_automatic_sender ON message (sender, created_at) WHERE hops > 0;

ALTER TABLE delivery ADD COLUMN expires_at TEXT;
-- The message that made this one obsolete; it ends waiting as an intake does.
ALTER TABLE delivery ADD COLUMN superseded_by TEXT;
CREATE INDEX delivery_intended ON delivery (project, intended_session) WHERE open = 1 AND intended_session IS NOT NULL;

ALTER TABLE event ADD COLUMN receipt_id TEXT;

ALTER TABLE receipt ADD COLUMN detail TEXT;

-- A cursor says its position itself.
DROP TABLE cursor;

-- A session that refused, and the message to its principal that took its place.
CREATE TABLE fallback (
  delivery_id          TEXT PRIMARY KEY REFERENCES delivery (delivery_id),
  refused_delivery_id  TEXT NOT NULL REFERENCES delivery (delivery_id),
  reason               TEXT NOT NULL
) STRICT;

-- Notices that a host did not take. The ordinary ones of a session share one slot.
CREATE TABLE failed_delivery (
  seq              INTEGER PRIMARY KEY,
  id               TEXT NOT NULL UNIQUE,
  session_root     TEXT NOT NULL,
  kind             TEXT NOT NULL,
  notification_id  TEXT,
  message_id       TEXT,
  sender           TEXT NOT NULL,
  reason           TEXT NOT NULL,
  text             TEXT NOT NULL,
  recorded_at      TEXT NOT NULL
) STRICT;
CREATE INDEX failed_delivery_session ON failed_delivery (session_root, seq);
CREATE UNIQUE INDEX failed_delivery_slot ON failed_delivery (session_root) WHERE kind = 'notice';

-- The task a session works on, as far as its messages say.
CREATE TABLE progress_marker (
  session_root  TEXT PRIMARY KEY,
  project       TEXT NOT NULL,
  principal_id  TEXT,
  task_id       TEXT NOT NULL,
  since_ms      INTEGER NOT NULL
) STRICT;
CREATE INDEX progress_marker_task ON progress_marker (task_id);

-- The router that holds the lock writes who it is; the newest row is the running one, if one runs.
CREATE TABLE router_run (
  seq         INTEGER PRIMARY KEY,
  instance    TEXT NOT NULL UNIQUE,
  pid         INTEGER NOT NULL,
  version     TEXT NOT NULL,
  socket      TEXT NOT NULL,
  started_at  TEXT NOT NULL
) STRICT;
CREATE TABLE router_superseded (
  version           TEXT PRIMARY KEY,
  superseded_at_ms  INTEGER NOT NULL
) STRICT;

CREATE TABLE storage (
  one            INTEGER PRIMARY KEY CHECK (one = 1),
  payload_bytes  INTEGER NOT NULL
) STRICT;
INSERT INTO storage SELECT 1, coalesce(sum(octet_length(payload)), 0) FROM message;
