DROP TABLE audit_checkpoints;
DROP TABLE audit_log;
DROP TABLE hook_epoch;
DROP TABLE hook_outbox;
DROP TABLE hook_changes;
DROP TABLE hook_breakers;
