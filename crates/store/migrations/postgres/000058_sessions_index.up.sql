-- The newest sessions of a tenant, without a look at all of them. Tenants may be longer than what an index takes.
CREATE INDEX sessions_by_newest ON sessions (substring(tenant_id from 1 for 64), last_entry);
