-- Several nodes at one database. A lease says which node works a session: `owner` has it until `expires_ms`, by the clock
-- of the server, unless it gives it back before. Every append carries the fence under which it was made and is refused
-- when that is not the newest. The index on `fence` makes taking a lease wait for appends that are under way, and
-- renewing one not.
CREATE SEQUENCE lease_fence;

CREATE TABLE leases (
    place      BIGINT NOT NULL PRIMARY KEY,
    tenant_id  TEXT   NOT NULL,
    session_id TEXT   NOT NULL,
    fence      BIGINT NOT NULL UNIQUE,
    owner      UUID,            -- the store of a process; nobody after it was given back
    expires_ms BIGINT NOT NULL, -- since 1970
    pid        BIGINT NOT NULL,
    host       TEXT   NOT NULL,
    boot       TEXT   NOT NULL, -- which run of that machine
    node       TEXT   NOT NULL  -- the node that works or worked it last; empty if none ever did
);

ALTER SEQUENCE lease_fence OWNED BY leases.fence;

CREATE INDEX leases_by_name ON leases USING hash (session_id);

-- Advisory locks gave way to leases.
DROP TABLE holders;

CREATE INDEX sessions_open ON sessions (tenant_id) WHERE open_turn IS NOT NULL;

-- The nodes that serve this database, each with what it says of itself.
CREATE TABLE nodes (
    id       UUID   NOT NULL PRIMARY KEY,
    name     TEXT   NOT NULL,
    level    BIGINT NOT NULL, -- of the schema that it knows
    since_ms BIGINT NOT NULL,
    seen_ms  BIGINT NOT NULL, -- 0 once it left
    state    TEXT   NOT NULL, -- JSON
    cut      TEXT   NOT NULL  -- JSON: the sessions whose turns its end cut, until its next start has said so
);

-- What is said to the node that works a session.
CREATE TABLE node_mail (
    seq        BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id  TEXT   NOT NULL,
    session_id TEXT   NOT NULL,
    at_ms      BIGINT NOT NULL,
    kind       TEXT   NOT NULL,
    body       TEXT   NOT NULL
);

CREATE INDEX node_mail_by_session ON node_mail USING hash (session_id);

-- What all nodes hear of, for as long as one may have missed it.
CREATE TABLE node_news (
    seq   BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at_ms BIGINT NOT NULL,
    node  UUID   NOT NULL,
    body  TEXT   NOT NULL -- JSON: ids
);
