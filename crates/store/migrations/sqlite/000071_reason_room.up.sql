-- Why a hook is off is said by people, too: as much as the change log takes. A column cannot be made wider here.
ALTER TABLE agent_hooks ADD COLUMN wide_reason TEXT NOT NULL DEFAULT '' CHECK (length(wide_reason) <= 255);
UPDATE agent_hooks SET wide_reason = disabled_reason;
ALTER TABLE agent_hooks DROP COLUMN disabled_reason;
ALTER TABLE agent_hooks RENAME COLUMN wide_reason TO disabled_reason;
