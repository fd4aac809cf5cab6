-- The circuit breaker, for each hook and the tenant whose event it was.
CREATE TABLE hook_breakers (
    hook_id         TEXT    NOT NULL REFERENCES agent_hooks (id) ON DELETE CASCADE, -- UUID
    tenant_id       TEXT    NOT NULL, -- UUID
    run             TEXT    NOT NULL DEFAULT '[]', -- JSON
    tripped_at      TEXT, -- RFC 3339, UTC
    updated_at      TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), -- RFC 3339, UTC
    PRIMARY KEY (hook_id, tenant_id)
) STRICT;

-- Who changed which hook. It outlives the hook.
CREATE TABLE hook_changes (
    id              TEXT    NOT NULL PRIMARY KEY, -- UUID
    tenant_id       TEXT    NOT NULL, -- UUID
    hook_id         TEXT    NOT NULL, -- UUID
    at              TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), -- RFC 3339, UTC
    actor           TEXT    NOT NULL,
    action          TEXT    NOT NULL
                            CHECK (action IN ('created', 'updated', 'deleted', 'toggled', 'tripped', 'reset',
                                'disabled')),
    version         INTEGER NOT NULL,
    diff            TEXT    NOT NULL DEFAULT '{}' -- secrets are masked
) STRICT;

CREATE INDEX hook_changes_by_hook ON hook_changes (hook_id, at DESC, id DESC);

-- Jobs of hooks that nobody waits for, which survive a restart.
CREATE TABLE hook_outbox (
    id              TEXT    NOT NULL PRIMARY KEY, -- UUID
    tenant_id       TEXT    NOT NULL, -- UUID
    hook_id         TEXT    NOT NULL, -- UUID
    event_id        TEXT    NOT NULL, -- UUID
    payload         BLOB    NOT NULL, -- encrypted
    attempts        INTEGER NOT NULL DEFAULT 0,
    next_at         TEXT    NOT NULL -- RFC 3339, UTC
) STRICT;

CREATE INDEX hook_outbox_by_time ON hook_outbox (next_at);

-- How often hooks changed: whoever has seen another number reads them anew.
CREATE TABLE hook_epoch (
    id              INTEGER PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    epoch           INTEGER NOT NULL DEFAULT 0
) STRICT;

INSERT INTO hook_epoch (id, epoch) VALUES (1, 0);

-- A chain for each tenant: every row proves the one before it.
CREATE TABLE audit_log (
    tenant_id       TEXT    NOT NULL, -- UUID
    seq             INTEGER NOT NULL,
    at              TEXT    NOT NULL, -- RFC 3339, UTC
    kind            TEXT    NOT NULL CHECK (kind IN ('record', 'decision', 'change', 'trip')),
    body            TEXT    NOT NULL, -- RFC 8785 JSON
    prev            TEXT    NOT NULL CHECK (length(prev) = 64),
    hash            TEXT    NOT NULL CHECK (length(hash) = 64), -- SHA-256 of prev, a line feed and body, in hex
    PRIMARY KEY (tenant_id, seq)
) STRICT;

CREATE INDEX audit_log_by_age ON audit_log (at);

-- Signed places of the chains.
CREATE TABLE audit_checkpoints (
    tenant_id       TEXT    NOT NULL, -- UUID
    seq             INTEGER NOT NULL,
    hash            TEXT    NOT NULL CHECK (length(hash) = 64),
    at              TEXT    NOT NULL, -- RFC 3339, UTC
    kid             TEXT    NOT NULL CHECK (length(kid) <= 64),
    signature       BLOB    NOT NULL, -- Ed25519
    PRIMARY KEY (tenant_id, seq)
) STRICT;
