-- The beginning of what the program of a hook wrote, encrypted. Null where it wrote nothing, where nothing of it may be
-- kept, and in what was there before this step.
ALTER TABLE hook_executions ADD COLUMN output BLOB;
