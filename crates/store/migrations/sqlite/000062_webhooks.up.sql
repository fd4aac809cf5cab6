-- Who is told what happens, by an id: the address stands in the configuration.
CREATE TABLE webhook_endpoints (
    id              TEXT    NOT NULL PRIMARY KEY, -- UUID
    seq             INTEGER NOT NULL DEFAULT 0,   -- of the newest event that was kept for it
    stopped_at      TEXT                          -- RFC 3339, UTC; it said that it wants nothing any more
) STRICT;

-- What they are still to be told.
CREATE TABLE webhook_outbox (
    id              TEXT    NOT NULL PRIMARY KEY, -- UUID
    endpoint_id     TEXT    NOT NULL REFERENCES webhook_endpoints (id),
    tenant_id       TEXT    NOT NULL, -- UUID
    event           TEXT    NOT NULL,
    seq             INTEGER NOT NULL,
    data            TEXT    NOT NULL, -- JSON
    at              TEXT    NOT NULL, -- RFC 3339, UTC
    attempts        INTEGER NOT NULL DEFAULT 0,
    next_at         TEXT    NOT NULL, -- RFC 3339, UTC
    failed_at       TEXT,             -- RFC 3339, UTC
    error           TEXT
) STRICT;

CREATE INDEX webhook_outbox_by_time ON webhook_outbox (next_at);
