-- A session's history also holds what was meant for it under a name that it no longer has.
CREATE INDEX delivery_meant ON delivery (project, intended_session) WHERE intended_session IS NOT NULL;
