-- Why a hook is off is said by people, too: as much as the change log takes.
ALTER TABLE agent_hooks ALTER COLUMN disabled_reason TYPE VARCHAR(255);
