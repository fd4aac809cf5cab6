-- Nothing is looked for by it: a chain is cut at a signature, whose table knows the time.
DROP INDEX audit_log_by_age;
