-- Migration 5: Codex and ACP. Where the host of a session keeps its queue, and which notices in such a queue are still to be started.

-- Written by whoever rings the session, read by the router. `home` is null where the host uses its default.
CREATE TABLE host_place (
  session_id   TEXT PRIMARY KEY,
  program      TEXT NOT NULL,
  home         TEXT,
  recorded_at  TEXT NOT NULL
) STRICT;

-- One row a hand-off that a queue accepted, until its intake or its final outcome; a restarted router carries on.
CREATE TABLE queue_release (
  delivery_id    TEXT PRIMARY KEY REFERENCES delivery (delivery_id),
  session_id     TEXT NOT NULL,
  thread_id      TEXT NOT NULL,
  submission_id  TEXT,
  checks         INTEGER NOT NULL DEFAULT 0,
  next_check_ms  INTEGER NOT NULL,
  ends_ms        INTEGER NOT NULL
) STRICT;
CREATE INDEX queue_release_due ON queue_release (next_check_ms);

-- Whether an item in a queue is one that a hand-off of ours left there.
CREATE INDEX host_accept_submission ON host_accept (receipt ->> '$.submission_id') WHERE adapter_kind = 'codex-queue';

-- What the host answered to the ring of a reservation, for a hand-off that finds itself rung for already.
ALTER TABLE reservation ADD COLUMN receipt TEXT;

-- How the prompt of a ring ended, in the agent's own word, where that is not the end of its turn. No receipt.
ALTER TABLE attempt ADD COLUMN stop_reason TEXT;
