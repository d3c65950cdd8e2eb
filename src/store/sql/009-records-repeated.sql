-- Migration 9: pairing requests and routes are sent again after a relay took them, since it keeps them for a day alone.

-- When a relay took it last.
ALTER TABLE control_job ADD COLUMN accepted_ms INTEGER;
