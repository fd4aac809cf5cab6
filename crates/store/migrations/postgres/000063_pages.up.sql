-- The newest turns of a tenant, and the newest changes of rules, without a look at all of them. Tenants may be longer than what an index takes.
CREATE INDEX turns_by_tenant ON turns (substring(tenant_id from 1 for 64), number);
CREATE INDEX hook_changes_by_time ON hook_changes (at DESC, id DESC);
