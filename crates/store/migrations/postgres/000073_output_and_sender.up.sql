-- The beginning of what the program of a hook wrote, encrypted. Null where it wrote nothing, where nothing of it may be
-- kept, and in what was there before this step.
ALTER TABLE hook_executions ADD COLUMN output BYTEA;
-- Who left a letter, as JSON: it is not delivered once they may not talk to agents any more. Null from a node that does not
-- know of it.
ALTER TABLE node_mail ADD COLUMN sender TEXT;
