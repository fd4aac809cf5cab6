CREATE INDEX audit_log_by_age ON audit_log (at);
