UPDATE events SET tenant_id = 'default' WHERE tenant_id = '0193a5b0-7000-7000-8000-000000000002';
UPDATE sessions SET tenant_id = 'default' WHERE tenant_id = '0193a5b0-7000-7000-8000-000000000002';
DELETE FROM holders WHERE tenant_id = '0193a5b0-7000-7000-8000-000000000002';
DROP TABLE tenants;
