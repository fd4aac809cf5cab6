ALTER TABLE agent_hooks ALTER COLUMN disabled_reason TYPE VARCHAR(32) USING left(disabled_reason, 32);
