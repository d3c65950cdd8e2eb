-- Migration 6: other machines. A message to a peer is a message whose delivery names the peer's key; it waits in nobody's inbox here
-- (`open` is 0 from its start). A message from a peer names the verified key, and the id that its sender gave it.

ALTER TABLE message ADD COLUMN peer_key TEXT;
ALTER TABLE message ADD COLUMN origin_id TEXT;
-- The return route: a claim of that key, never an identity here.
ALTER TABLE message ADD COLUMN origin_session TEXT;
ALTER TABLE message ADD COLUMN origin_device TEXT;
-- Of a chain of answers, its first message's id on the wire; null where the message stands at its start and was never sent away.
ALTER TABLE message ADD COLUMN root_id TEXT;
-- When its payload was replaced by a tombstone.
ALTER TABLE message ADD COLUMN tombstoned_at TEXT;
CREATE UNIQUE INDEX message_origin ON message (peer_key, origin_id) WHERE peer_key IS NOT NULL;
CREATE INDEX message_peer ON message (peer_key, created_at) WHERE peer_key IS NOT NULL;

ALTER TABLE delivery ADD COLUMN peer_key TEXT;
CREATE INDEX delivery_peer ON delivery (peer_key, project, seq) WHERE peer_key IS NOT NULL;

-- Facts of a peer (`peer`: signed by its key) and of the outbox stand beside the recipient's own.
ALTER TABLE receipt ADD COLUMN source TEXT NOT NULL DEFAULT 'receipt';
ALTER TABLE receipt ADD COLUMN peer_key TEXT;
-- The time that the peer gives.
ALTER TABLE receipt ADD COLUMN peer_recorded_at TEXT;

CREATE INDEX receipt_taken_in ON receipt (caller_session, recorded_at)
  WHERE receipt_kind = 'intake' AND caller_session IS NOT NULL;

-- What counts against the bound of a peer in one inbox; a row goes when its message is pruned.
CREATE TABLE link_record (
  delivery_id  TEXT PRIMARY KEY REFERENCES delivery (delivery_id),
  peer_key     TEXT NOT NULL,
  owner        TEXT NOT NULL,
  bytes        INTEGER NOT NULL,
  sent_ms      INTEGER NOT NULL
) STRICT;
CREATE INDEX link_record_owner ON link_record (peer_key, owner, sent_ms);

-- One row a message to a peer. It ends by the peer's signed receipt, by expiry, or here with a reason.
CREATE TABLE outbox (
  seq         INTEGER PRIMARY KEY AUTOINCREMENT,
  message_id  TEXT NOT NULL UNIQUE REFERENCES message (message_id),
  peer_key    TEXT NOT NULL,
  wire_id     TEXT NOT NULL UNIQUE,
  -- 16 random bytes in hex: ids of its items come from it, so that a relay cannot link them to the message.
  secret      TEXT NOT NULL,
  bytes       INTEGER NOT NULL,
  -- Where it goes; null while no device of the peer is known.
  device      TEXT,
  expires_ms  INTEGER NOT NULL,
  ended_at    TEXT
) STRICT;
CREATE INDEX outbox_open ON outbox (peer_key, seq) WHERE ended_at IS NULL;
CREATE INDEX outbox_expiry ON outbox (expires_ms) WHERE ended_at IS NULL;

-- How a message stands at one relay. `next_ms` is null when nothing is to be done there any more.
CREATE TABLE outbox_post (
  message_id   TEXT NOT NULL REFERENCES outbox (message_id),
  relay        TEXT NOT NULL,
  device       TEXT NOT NULL,
  attempts     INTEGER NOT NULL DEFAULT 0,
  -- In a row.
  failures     INTEGER NOT NULL DEFAULT 0,
  -- How often it took it, and when first.
  accepts      INTEGER NOT NULL DEFAULT 0,
  accepted_ms  INTEGER,
  next_ms      INTEGER,
  -- Refused by the relay in a way that time may mend: holds up no other.
  parked       INTEGER NOT NULL DEFAULT 0,
  last_error   TEXT,
  PRIMARY KEY (message_id, relay)
) STRICT, WITHOUT ROWID;
CREATE INDEX outbox_post_due ON outbox_post (relay, next_ms) WHERE next_ms IS NOT NULL;
CREATE INDEX outbox_post_held ON outbox_post (relay, device, next_ms)
  WHERE accepted_ms IS NULL AND parked = 0 AND next_ms IS NOT NULL;

-- Facts that a peer is still to be told; a row goes when a relay has taken the record that tells it.
CREATE TABLE receipt_out (
  seq       INTEGER PRIMARY KEY AUTOINCREMENT,
  peer_key  TEXT NOT NULL,
  device    TEXT NOT NULL,
  wire_id   TEXT NOT NULL,
  fact      TEXT NOT NULL,
  detail    TEXT NOT NULL,
  at_ms     INTEGER NOT NULL,
  UNIQUE (peer_key, device, wire_id, fact, detail, at_ms)
) STRICT;

-- Devices of peers: where they are reached, and what their last card said.
CREATE TABLE peer_device (
  peer_key   TEXT NOT NULL,
  device     TEXT NOT NULL,
  relays     TEXT NOT NULL DEFAULT '[]',
  suites     TEXT NOT NULL DEFAULT '[1]',
  -- When the newest verified record of it was signed, and the newest that said where it is reached.
  heard_ms   INTEGER NOT NULL,
  route_ms   INTEGER NOT NULL DEFAULT 0,
  -- What relays said when they were asked last: the time of that, and the age they gave. `gone` is 1 where its owner closed it.
  looked_ms  INTEGER,
  age_ms     INTEGER,
  gone       INTEGER NOT NULL DEFAULT 0,
  card_ms    INTEGER,
  card       TEXT,
  PRIMARY KEY (peer_key, device)
) STRICT, WITHOUT ROWID;

-- This data directory among those of the account, and the door for strangers.
CREATE TABLE place (
  one     INTEGER PRIMARY KEY CHECK (one = 1),
  device  TEXT NOT NULL,
  door    TEXT NOT NULL
) STRICT;
-- Former ones, until each relay has been told to purge them.
CREATE TABLE retired_queue (
  queue_id    TEXT PRIMARY KEY,
  retired_at  TEXT NOT NULL
) STRICT;

-- What the trust gate refused, a row a step.
CREATE TABLE gate_refusal (
  step     TEXT PRIMARY KEY,
  count    INTEGER NOT NULL,
  last_at  TEXT NOT NULL
) STRICT;
