-- A person is told once of each chain of answers that went beyond what wakes: by the first of its messages that did.
CREATE INDEX message_looped ON message (root_id, seq) WHERE hops > 31;
