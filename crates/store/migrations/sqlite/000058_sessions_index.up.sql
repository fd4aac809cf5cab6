-- The newest sessions of a tenant, without a look at all of them.
CREATE INDEX sessions_by_newest ON sessions (tenant_id, last_entry);
