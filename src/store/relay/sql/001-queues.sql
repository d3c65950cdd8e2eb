-- The store of a relay. Times are Unix ms of the relay's own clock.

CREATE TABLE relay (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  id TEXT NOT NULL,
  -- Tokens are made with it, so that one of before a restart still says its item.
  token_key BLOB NOT NULL,
  -- Of all queues.
  queues INTEGER NOT NULL DEFAULT 0 CHECK (queues >= 0),
  items INTEGER NOT NULL DEFAULT 0 CHECK (items >= 0),
  bytes INTEGER NOT NULL DEFAULT 0 CHECK (bytes >= 0)
);

CREATE TABLE queue (
  -- Never given twice: a token of a queue that was purged says nothing of a later one.
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  door INTEGER NOT NULL CHECK (door IN (0, 1)),
  gone INTEGER NOT NULL CHECK (gone IN (0, 1)),
  -- 0 when its owner was not seen for three days.
  present INTEGER NOT NULL CHECK (present IN (0, 1)),
  seen_ms INTEGER NOT NULL,
  -- Of its items, so that a post counts nothing.
  items INTEGER NOT NULL DEFAULT 0 CHECK (items >= 0),
  bytes INTEGER NOT NULL DEFAULT 0 CHECK (bytes >= 0)
);

CREATE INDEX queue_by_age ON queue (seen_ms);

-- Apart, since the row of a queue changes with every item.
CREATE TABLE card (
  queue INTEGER PRIMARY KEY REFERENCES queue (number) ON DELETE CASCADE,
  card BLOB NOT NULL
);

CREATE TABLE item (
  -- The order of acceptance; never given twice.
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  queue INTEGER NOT NULL REFERENCES queue (number) ON DELETE CASCADE,
  id TEXT NOT NULL,
  accepted_ms INTEGER NOT NULL,
  expires_ms INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  body BLOB NOT NULL
);

CREATE UNIQUE INDEX item_once ON item (queue, id);
CREATE INDEX item_in_order ON item (queue, number);
CREATE INDEX item_by_expiry ON item (expires_ms);
