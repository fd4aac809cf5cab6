-- Who is told what happens, by an id: the address stands in the configuration.
CREATE TABLE webhook_endpoints (
    id         UUID        PRIMARY KEY,
    seq        BIGINT      NOT NULL DEFAULT 0, -- of the newest event that was kept for it
    stopped_at TIMESTAMPTZ                     -- it said that it wants nothing any more
);

-- What they are still to be told.
CREATE TABLE webhook_outbox (
    id          UUID        PRIMARY KEY,
    endpoint_id UUID        NOT NULL REFERENCES webhook_endpoints (id),
    tenant_id   UUID        NOT NULL,
    event       TEXT        NOT NULL,
    seq         BIGINT      NOT NULL,
    data        TEXT        NOT NULL, -- JSON
    at          TIMESTAMPTZ NOT NULL,
    attempts    INT         NOT NULL DEFAULT 0,
    next_at     TIMESTAMPTZ NOT NULL,
    failed_at   TIMESTAMPTZ,
    error       TEXT
);

CREATE INDEX webhook_outbox_by_time ON webhook_outbox (next_at);
