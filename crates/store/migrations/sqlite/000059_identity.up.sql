-- Tenants that are disabled, since when and by whom.
CREATE TABLE tenant_stops (
    tenant_id   TEXT NOT NULL PRIMARY KEY REFERENCES tenants (id), -- UUID
    at          TEXT NOT NULL, -- RFC 3339, UTC
    actor       TEXT NOT NULL
) STRICT;

-- Who belongs to a tenant, and what they may do there.
CREATE TABLE members (
    tenant_id   TEXT NOT NULL REFERENCES tenants (id), -- UUID
    user_id     TEXT NOT NULL CHECK (length(user_id) BETWEEN 1 AND 255),
    role        TEXT NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
    disabled_at TEXT, -- RFC 3339, UTC
    created_at  TEXT NOT NULL, -- RFC 3339, UTC
    created_by  TEXT NOT NULL,
    PRIMARY KEY (tenant_id, user_id)
) STRICT;

-- Keys of members. Of the key itself there is the digest.
CREATE TABLE api_keys (
    tenant_id   TEXT NOT NULL REFERENCES tenants (id), -- UUID
    id          TEXT NOT NULL, -- UUID
    owner       TEXT NOT NULL,
    name        TEXT NOT NULL CHECK (length(name) <= 255),
    shown       TEXT NOT NULL,
    digest      TEXT NOT NULL UNIQUE CHECK (length(digest) = 64), -- SHA-256 in hex
    scopes      TEXT NOT NULL, -- words, a blank between
    expires_at  TEXT, -- RFC 3339, UTC
    revoked_at  TEXT, -- RFC 3339, UTC
    revoked_by  TEXT,
    created_at  TEXT NOT NULL, -- RFC 3339, UTC
    created_by  TEXT NOT NULL,
    PRIMARY KEY (tenant_id, id)
) STRICT;

-- Links that sign somebody in to the console once.
CREATE TABLE console_links (
    digest      TEXT NOT NULL PRIMARY KEY CHECK (length(digest) = 64), -- SHA-256 in hex
    tenant_id   TEXT NOT NULL REFERENCES tenants (id), -- UUID
    user_id     TEXT NOT NULL,
    role        TEXT NOT NULL CHECK (role IN ('viewer', 'operator', 'admin', 'owner')),
    expires_at  TEXT NOT NULL -- RFC 3339, UTC
) STRICT;

-- Who is signed in to the console from which browser.
CREATE TABLE console_sessions (
    tenant_id   TEXT NOT NULL REFERENCES tenants (id), -- UUID
    id          TEXT NOT NULL, -- UUID
    user_id     TEXT NOT NULL,
    role        TEXT NOT NULL CHECK (role IN ('viewer', 'operator', 'admin', 'owner')),
    origin      TEXT NOT NULL, -- link, token:DIGEST or key:ID
    device      TEXT NOT NULL,
    key_digest  TEXT NOT NULL UNIQUE CHECK (length(key_digest) = 64), -- SHA-256 in hex
    cookie_digest TEXT NOT NULL CHECK (length(cookie_digest) = 64), -- SHA-256 in hex
    created_at  TEXT NOT NULL, -- RFC 3339, UTC
    seen_at     TEXT NOT NULL, -- RFC 3339, UTC
    PRIMARY KEY (tenant_id, id)
) STRICT;

CREATE INDEX console_sessions_by_user ON console_sessions (tenant_id, user_id);

-- What is counted over all nodes: turns in flight, open connections.
CREATE TABLE gateway_uses (
    id          TEXT NOT NULL PRIMARY KEY, -- UUID
    kind        TEXT NOT NULL CHECK (kind IN ('turn', 'connection')),
    tenant_id   TEXT NOT NULL REFERENCES tenants (id), -- UUID
    who         TEXT NOT NULL,
    node        TEXT NOT NULL,
    until       TEXT NOT NULL -- RFC 3339, UTC
) STRICT;

CREATE INDEX gateway_uses_by_who ON gateway_uses (tenant_id, kind, who);
CREATE INDEX gateway_uses_by_node ON gateway_uses (node);

-- How often something was taken away from somebody: whoever has seen another number looks again who may what.
CREATE TABLE identity_epoch (
    id          INTEGER PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    epoch       INTEGER NOT NULL DEFAULT 0
) STRICT;

INSERT INTO identity_epoch (id, epoch) VALUES (1, 0);
