-- Who data belongs to. The sentinel carries what is global; nobody lives in it.
CREATE TABLE tenants (
    id         TEXT NOT NULL PRIMARY KEY CHECK (length(id) = 36), -- UUID
    slug       TEXT NOT NULL UNIQUE CHECK (length(slug) <= 255),
    name       TEXT NOT NULL CHECK (length(name) <= 255),
    created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) -- RFC 3339, UTC
) STRICT;

INSERT INTO tenants (id, slug, name) VALUES
    ('0193a5b0-7000-7000-8000-000000000001', 'global', 'Global'),
    ('0193a5b0-7000-7000-8000-000000000002', 'default', 'Default');

-- What was kept before there were tenants belongs to the only one there was.
UPDATE events SET tenant_id = '0193a5b0-7000-7000-8000-000000000002' WHERE tenant_id = 'default';
UPDATE sessions SET tenant_id = '0193a5b0-7000-7000-8000-000000000002' WHERE tenant_id = 'default';
-- Notes about who holds what are of no use under another name.
DELETE FROM holders WHERE tenant_id = 'default';
