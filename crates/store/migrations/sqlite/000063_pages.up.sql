-- The newest turns of a tenant, and the newest changes of rules, without a look at all of them.
CREATE INDEX turns_by_tenant ON turns (tenant_id, number);
CREATE INDEX hook_changes_by_time ON hook_changes (at DESC, id DESC);
