-- Tenants that are disabled, since when and by whom.
CREATE TABLE tenant_stops (
    tenant_id   UUID        PRIMARY KEY REFERENCES tenants (id),
    at          TIMESTAMPTZ NOT NULL,
    actor       TEXT        NOT NULL
);

-- Who belongs to a tenant, and what they may do there.
CREATE TABLE members (
    tenant_id   UUID         NOT NULL REFERENCES tenants (id),
    user_id     VARCHAR(255) NOT NULL CHECK (user_id <> ''),
    role        VARCHAR(16)  NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
    disabled_at TIMESTAMPTZ,
    created_at  TIMESTAMPTZ  NOT NULL,
    created_by  TEXT         NOT NULL,
    PRIMARY KEY (tenant_id, user_id)
);

-- Keys of members. Of the key itself there is the digest.
CREATE TABLE api_keys (
    tenant_id   UUID         NOT NULL REFERENCES tenants (id),
    id          UUID         NOT NULL,
    owner       VARCHAR(255) NOT NULL,
    name        VARCHAR(255) NOT NULL,
    shown       VARCHAR(32)  NOT NULL,
    digest      VARCHAR(64)  NOT NULL UNIQUE, -- SHA-256 in hex
    scopes      TEXT         NOT NULL, -- words, a blank between
    expires_at  TIMESTAMPTZ,
    revoked_at  TIMESTAMPTZ,
    revoked_by  TEXT,
    created_at  TIMESTAMPTZ  NOT NULL,
    created_by  TEXT         NOT NULL,
    PRIMARY KEY (tenant_id, id)
);

-- Links that sign somebody in to the console once.
CREATE TABLE console_links (
    digest      VARCHAR(64)  PRIMARY KEY, -- SHA-256 in hex
    tenant_id   UUID         NOT NULL REFERENCES tenants (id),
    user_id     VARCHAR(255) NOT NULL,
    role        VARCHAR(16)  NOT NULL CHECK (role IN ('viewer', 'operator', 'admin', 'owner')),
    expires_at  TIMESTAMPTZ  NOT NULL
);

-- Who is signed in to the console from which browser.
CREATE TABLE console_sessions (
    tenant_id   UUID         NOT NULL REFERENCES tenants (id),
    id          UUID         NOT NULL,
    user_id     VARCHAR(255) NOT NULL,
    role        VARCHAR(16)  NOT NULL CHECK (role IN ('viewer', 'operator', 'admin', 'owner')),
    origin      TEXT         NOT NULL, -- link, token:DIGEST or key:ID
    device      TEXT         NOT NULL,
    key_digest  VARCHAR(64)  NOT NULL UNIQUE, -- SHA-256 in hex
    cookie_digest VARCHAR(64) NOT NULL, -- SHA-256 in hex
    created_at  TIMESTAMPTZ  NOT NULL,
    seen_at     TIMESTAMPTZ  NOT NULL,
    PRIMARY KEY (tenant_id, id)
);

CREATE INDEX console_sessions_by_user ON console_sessions (tenant_id, user_id);

-- What is counted over all nodes: turns in flight, open connections.
CREATE TABLE gateway_uses (
    id          UUID        PRIMARY KEY,
    kind        VARCHAR(16) NOT NULL CHECK (kind IN ('turn', 'connection')),
    tenant_id   UUID        NOT NULL REFERENCES tenants (id),
    who         TEXT        NOT NULL,
    node        TEXT        NOT NULL,
    until       TIMESTAMPTZ NOT NULL
);

CREATE INDEX gateway_uses_by_who ON gateway_uses (tenant_id, kind, who);
CREATE INDEX gateway_uses_by_node ON gateway_uses (node);

-- How often something was taken away from somebody: whoever has seen another number looks again who may what.
CREATE TABLE identity_epoch (
    id          INT    PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    epoch       BIGINT NOT NULL DEFAULT 0
);

INSERT INTO identity_epoch (id, epoch) VALUES (1, 0);
