-- What a session's host was told of without a listener's row: by its Stop gate, or in mid-turn. No row announces it again
-- within that reservation.
ALTER TABLE reservation_cover ADD COLUMN told INTEGER NOT NULL DEFAULT 0;

-- When the listeners of a session printed last (JSON, ms, newest first), so that one that prints over and over is held back.
ALTER TABLE listener_cursor ADD COLUMN prints TEXT NOT NULL DEFAULT '[]';
