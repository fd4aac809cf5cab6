-- Who data belongs to. The sentinel carries what is global; nobody lives in it.
CREATE TABLE tenants (
    id         UUID         PRIMARY KEY,
    slug       VARCHAR(255) NOT NULL UNIQUE,
    name       VARCHAR(255) NOT NULL,
    created_at TIMESTAMPTZ  NOT NULL DEFAULT now()
);

INSERT INTO tenants (id, slug, name) VALUES
    ('0193a5b0-7000-7000-8000-000000000001', 'global', 'Global'),
    ('0193a5b0-7000-7000-8000-000000000002', 'default', 'Default');

-- What was kept before there were tenants belongs to the only one there was.
UPDATE events SET tenant_id = '0193a5b0-7000-7000-8000-000000000002' WHERE tenant_id = 'default';
UPDATE sessions SET tenant_id = '0193a5b0-7000-7000-8000-000000000002' WHERE tenant_id = 'default';
-- Notes about who holds what are of no use under another name.
DELETE FROM holders WHERE tenant_id = 'default';
