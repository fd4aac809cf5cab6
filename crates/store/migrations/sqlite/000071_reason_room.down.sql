ALTER TABLE agent_hooks ADD COLUMN short_reason TEXT NOT NULL DEFAULT '' CHECK (length(short_reason) <= 32);
UPDATE agent_hooks SET short_reason = substr(disabled_reason, 1, 32);
ALTER TABLE agent_hooks DROP COLUMN disabled_reason;
ALTER TABLE agent_hooks RENAME COLUMN short_reason TO disabled_reason;
