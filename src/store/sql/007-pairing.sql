-- Migration 7: pairing. Nothing here is trust: that is the owner's policy file alone.

-- Strangers that ask to be admitted, one row a key.
CREATE TABLE pair_request (
  seq         INTEGER PRIMARY KEY AUTOINCREMENT,
  peer_key    TEXT NOT NULL UNIQUE,
  request_id  TEXT NOT NULL,
  -- What it claims to be called: data, never a petname.
  name        TEXT NOT NULL,
  device      TEXT NOT NULL,
  relays      TEXT NOT NULL,
  suites      TEXT NOT NULL,
  arrived_ms  INTEGER NOT NULL,
  -- 1 once the operator was shown it.
  listed      INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Whom this account's operator has asked, under the name that he typed.
CREATE TABLE pair_asked (
  peer_key    TEXT PRIMARY KEY,
  request_id  TEXT NOT NULL,
  name        TEXT NOT NULL,
  asked_ms    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Records on their way to one queue; a row goes when a relay has taken it. `next_ms` is null while only its room is reserved.
CREATE TABLE control_job (
  seq         INTEGER PRIMARY KEY AUTOINCREMENT,
  kind        TEXT NOT NULL CHECK (kind IN ('pair_request', 'pair_accept', 'route')),
  peer_key    TEXT NOT NULL,
  -- Device or door of the queue.
  queue       TEXT NOT NULL,
  relays      TEXT NOT NULL,
  record_id   TEXT NOT NULL,
  -- The request that an acceptance answers.
  request_id  TEXT,
  -- The own name that it claims.
  name        TEXT,
  -- 16 random bytes in hex: ids of its items come from it.
  secret      TEXT NOT NULL,
  attempts    INTEGER NOT NULL DEFAULT 0,
  next_ms     INTEGER,
  expires_ms  INTEGER NOT NULL,
  last_error  TEXT,
  UNIQUE (kind, peer_key, queue)
) STRICT;
CREATE INDEX control_job_due ON control_job (next_ms) WHERE next_ms IS NOT NULL;

-- What sessions are to be rung for. Without a session it is the first one's that can be rung.
CREATE TABLE pairing_notice (
  seq           INTEGER PRIMARY KEY AUTOINCREMENT,
  session_root  TEXT,
  kind          TEXT NOT NULL CHECK (kind IN ('request', 'conflict')),
  peer_key      TEXT NOT NULL,
  -- Of a conflict: the petname that was taken.
  name          TEXT,
  created_ms    INTEGER NOT NULL
) STRICT;
CREATE INDEX pairing_notice_session ON pairing_notice (session_root, seq);
CREATE INDEX pairing_notice_key ON pairing_notice (peer_key);

-- Before it a session is not rung for pairing again.
CREATE TABLE pairing_pause (
  session_root  TEXT PRIMARY KEY,
  until_ms      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- `pairing`: the row is a pairing notice and stands for itself.
ALTER TABLE listener_row ADD COLUMN kind TEXT NOT NULL DEFAULT 'mail';

-- What peers were last told of where this account is reached.
CREATE TABLE announced_route (
  one    INTEGER PRIMARY KEY CHECK (one = 1),
  route  TEXT NOT NULL
) STRICT;
