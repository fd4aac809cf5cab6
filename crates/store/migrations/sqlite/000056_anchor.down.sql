DROP INDEX audit_log_changes;
DROP TABLE store_identity;
