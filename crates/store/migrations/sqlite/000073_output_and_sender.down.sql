ALTER TABLE hook_executions DROP COLUMN output;
