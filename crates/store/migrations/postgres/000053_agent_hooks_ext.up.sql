-- The circuit breaker, for each hook and the tenant whose event it was.
CREATE TABLE hook_breakers (
    hook_id    UUID        NOT NULL REFERENCES agent_hooks (id) ON DELETE CASCADE,
    tenant_id  UUID        NOT NULL,
    run        JSONB       NOT NULL DEFAULT '[]',
    tripped_at TIMESTAMPTZ,
    updated_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (hook_id, tenant_id)
);

-- Who changed which hook. It outlives the hook.
CREATE TABLE hook_changes (
    id        UUID        PRIMARY KEY,
    tenant_id UUID        NOT NULL,
    hook_id   UUID        NOT NULL,
    at        TIMESTAMPTZ NOT NULL DEFAULT now(),
    actor     TEXT        NOT NULL,
    action    VARCHAR(16) NOT NULL CHECK (action IN ('created', 'updated', 'deleted', 'toggled', 'tripped', 'reset',
                                                     'disabled')),
    version   INT         NOT NULL,
    diff      JSONB       NOT NULL DEFAULT '{}' -- secrets are masked
);

CREATE INDEX hook_changes_by_hook ON hook_changes (hook_id, at DESC, id DESC);

-- Jobs of hooks that nobody waits for, which survive a restart.
CREATE TABLE hook_outbox (
    id        UUID        PRIMARY KEY,
    tenant_id UUID        NOT NULL,
    hook_id   UUID        NOT NULL,
    event_id  UUID        NOT NULL,
    payload   BYTEA       NOT NULL, -- encrypted
    attempts  INT         NOT NULL DEFAULT 0,
    next_at   TIMESTAMPTZ NOT NULL
);

CREATE INDEX hook_outbox_by_time ON hook_outbox (next_at);

-- How often hooks changed: whoever has seen another number reads them anew.
CREATE TABLE hook_epoch (
    id    INT    PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    epoch BIGINT NOT NULL DEFAULT 0
);

INSERT INTO hook_epoch (id, epoch) VALUES (1, 0);

-- A chain for each tenant: every row proves the one before it.
CREATE TABLE audit_log (
    tenant_id UUID        NOT NULL,
    seq       BIGINT      NOT NULL,
    at        TIMESTAMPTZ NOT NULL,
    kind      VARCHAR(16) NOT NULL CHECK (kind IN ('record', 'decision', 'change', 'trip')),
    body      TEXT        NOT NULL, -- RFC 8785 JSON
    prev      CHAR(64)    NOT NULL,
    hash      CHAR(64)    NOT NULL, -- SHA-256 of prev, a line feed and body, in hex
    PRIMARY KEY (tenant_id, seq)
);

CREATE INDEX audit_log_by_age ON audit_log (at);

-- Signed places of the chains.
CREATE TABLE audit_checkpoints (
    tenant_id UUID        NOT NULL,
    seq       BIGINT      NOT NULL,
    hash      CHAR(64)    NOT NULL,
    at        TIMESTAMPTZ NOT NULL,
    kid       VARCHAR(64) NOT NULL,
    signature BYTEA       NOT NULL, -- Ed25519
    PRIMARY KEY (tenant_id, seq)
);
