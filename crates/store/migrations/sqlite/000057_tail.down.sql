CREATE INDEX audit_log_by_age ON audit_log (at);
DROP TABLE evidence_folded;
DROP TABLE evidence_tail;
