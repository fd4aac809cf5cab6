ALTER TABLE hook_executions DROP COLUMN output;
ALTER TABLE node_mail DROP COLUMN sender;
